//! The options of a database in PostgreSQL.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use lariat_lease::Leadership;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::Tls;

/// The default schema of the tables.
const SCHEMA: &str = "lariat";

/// The default timeout for connecting; the connection string may set another one.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a server may be silent before the connection is closed.
///
/// The connection string may set another time.
const SILENCE: Duration = Duration::from_secs(30);

/// A database of a PostgreSQL server, in which replicas share one cache.
///
/// Each cluster needs its own schema: one process writes it, and deletes what its cluster does not have. The others
/// only read: they open no watch, and answer queries from the same rows. The process that gets an advisory lock of the
/// server writes: the first one that requests it, and another one once the connection of that one ends. With a
/// [leadership](Self::written_by_leader), the leader writes.
///
/// It works with PostgreSQL 13 and later, and the encoding `UTF8`. A connection pool in between must give each
/// connection its own session. The database user needs the right to create the schema, or to create tables in it.
///
/// A server on another machine needs [certificates](Self::root_certificates) to trust, with which all connections are
/// encrypted. Without them, a cache starts only with a socket or a loopback address, or if
/// [plain text](Self::allow_plain_text) is allowed.
///
/// ```
/// use lariat::sql::Postgres;
///
/// let postgres = Postgres::new("postgresql://lariat:secret@db.example:5432/fleet")?.schema("east")?;
/// assert_eq!(postgres.server(), "db.example:5432/fleet");
/// assert!(!format!("{postgres:?}").contains("secret"));
/// # Ok::<(), lariat::sql::PostgresError>(())
/// ```
#[derive(Clone)]
#[must_use = "options do nothing until a cache is kept there"]
pub struct Postgres {
    pub(super) config: Box<Config>,
    pub(super) schema: String,
    pub(super) tls: Option<Tls>,
    /// Whether a server on another machine may be used without TLS.
    allows_plain_text: bool,
    leadership: Option<Leadership>,
}

impl Postgres {
    /// Parses a connection string.
    ///
    /// It has the form `postgresql://user:password@host:5432/database` or `host=… user=… dbname=…`. Neither the
    /// password nor the string appears in errors, logs or the debug form.
    ///
    /// # Errors
    ///
    /// Fails if the string cannot be parsed, or names no host.
    pub fn new(connection: &str) -> Result<Self, PostgresError> {
        // The library's error may contain a part of a password that is not escaped.
        let mut config = Config::from_str(connection).map_err(|_| PostgresError::Connection)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(PostgresError::Host);
        }
        // Without limits a server that vanishes without a reset would block a connection for hours.
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        if config.get_keepalives_interval().is_none() {
            config.keepalives_idle(SILENCE / 2);
            config.keepalives_interval(SILENCE / 6);
            config.keepalives_retries(3);
        }
        Ok(Self {
            config: Box::new(config),
            schema: SCHEMA.to_owned(),
            tls: None,
            allows_plain_text: false,
            leadership: None,
        })
    }

    /// Encrypts all connections, and verifies the server by these certificates.
    ///
    /// The server needs a certificate for its host name that one of these authorities has signed. The certificates are
    /// PEM-encoded; those of a Debian system are in `/etc/ssl/certs/ca-certificates.crt`. `sslmode` is ignored then.
    /// TLS 1.3 is used, without a client certificate.
    ///
    /// # Errors
    ///
    /// Fails if there is no certificate, or one that cannot be parsed.
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Result<Self, PostgresError> {
        self.tls = Some(Tls::new(pem.as_ref()).ok_or(PostgresError::Certificates)?);
        // With `prefer`, someone between could refuse TLS and would get plain text in spite of the certificates.
        self.config.ssl_mode(SslMode::Require);
        Ok(self)
    }

    /// Allows a server on another machine without certificates, over plain text.
    ///
    /// Everyone on the network in between can then read and change all objects of the cache, and may get the password.
    /// This is for networks that encrypt all traffic. With [certificates](Self::root_certificates) it has no effect.
    ///
    /// ```
    /// use lariat::sql::Postgres;
    ///
    /// # fn example() -> Result<(), lariat::sql::PostgresError> {
    /// // Between the Pods of a mesh that encrypts.
    /// let postgres = Postgres::new("postgresql://lariat@postgres.fleet/fleet")?.allow_plain_text();
    /// # let _ = postgres;
    /// # Ok(()) }
    /// # example().unwrap();
    /// ```
    pub fn allow_plain_text(mut self) -> Self {
        self.allows_plain_text = true;
        self
    }

    /// Sets the schema of the tables (default `lariat`).
    ///
    /// Nothing else may use the schema. It is created if it does not exist.
    ///
    /// ```
    /// use lariat::sql::Postgres;
    ///
    /// # fn example() -> Result<(), lariat::sql::PostgresError> {
    /// let database = Postgres::new("postgresql://shop:secret@db.example.com/shop")?.schema("east")?;
    /// assert!(!format!("{database:?}").contains("secret"));
    /// # Ok(()) }
    /// # example().unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Fails unless the name consists of at most 63 lower-case letters, digits and `_`, does not begin with a digit,
    /// and does not begin with `pg_`.
    pub fn schema(mut self, name: &str) -> Result<Self, PostgresError> {
        // The name becomes part of statements, which cannot take it as a parameter.
        let is_plain = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        let begins = name.starts_with(|c: char| !c.is_ascii_digit());
        if !is_plain || !begins || name.len() > 63 || name.starts_with("pg_") {
            return Err(PostgresError::Schema {
                name: name.to_owned(),
            });
        }
        name.clone_into(&mut self.schema);
        Ok(self)
    }

    /// Lets only the leader write.
    ///
    /// The leadership is that of `SharedControllerFactory::leadership` or of an elector. While there is no leader,
    /// queries are answered from the last written state.
    ///
    /// A new leader takes over from its predecessor immediately, even if that was suspended in the middle of a
    /// transaction: the server ends its connection. The database user must be the same. Do not use this with sharding:
    /// every member of a ring of shards leads.
    pub fn written_by_leader(mut self, leadership: Leadership) -> Self {
        self.leadership = Some(leadership);
        self
    }

    /// Returns the hosts and the database, as in errors.
    #[must_use]
    pub fn server(&self) -> String {
        let ports = self.config.get_ports();
        let port = |place: usize| {
            let port = ports.get(place).or(ports.first());
            port.copied().unwrap_or(5432)
        };
        let mut hosts: Vec<String> = self
            .config
            .get_hosts()
            .iter()
            .enumerate()
            .map(|(place, host)| match host {
                Host::Tcp(host) => format!("{host}:{}", port(place)),
                Host::Unix(path) => format!("{}:{}", path.display(), port(place)),
            })
            .collect();
        if hosts.is_empty() {
            let addresses = self.config.get_hostaddrs().iter();
            hosts.extend(addresses.map(ToString::to_string));
        }
        let database = self.config.get_dbname().or(self.config.get_user());
        format!("{}/{}", hosts.join(","), database.unwrap_or_default())
    }

    /// Returns whether connections would leave this machine in plain text unasked.
    pub(super) fn is_exposed(&self) -> bool {
        self.tls.is_none() && !self.allows_plain_text && !self.is_local()
    }

    /// Returns whether all hosts are sockets or loopback addresses.
    fn is_local(&self) -> bool {
        let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
        let mut addresses = self.config.get_hostaddrs().iter();
        // Then the hosts are only names for TLS.
        if addresses.len() > 0 {
            return addresses.all(|address| is_loopback(*address));
        }
        self.config.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(host) => {
                let address = host.trim_matches(['[', ']']).parse();
                host == "localhost" || address.is_ok_and(is_loopback)
            }
        })
    }

    pub(crate) fn leadership(&self) -> Option<Leadership> {
        self.leadership.clone()
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("server", &self.server())
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

/// The error of options that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The connection string cannot be read.
    #[error(
        "the connection string of PostgreSQL cannot be read: write it as postgresql://user:password@host:5432/database, with %40 for an @ in the password and so on; sslmode is disable, prefer or require"
    )]
    Connection,
    /// The connection string names no host.
    #[error(
        "the connection string of PostgreSQL names no host: add one, or the folder of its socket as ?host=/run/postgresql"
    )]
    Host,
    /// The certificates to trust cannot be read.
    #[error(
        "the root certificates for PostgreSQL cannot be read: give one or more in PEM form (-----BEGIN CERTIFICATE-----)"
    )]
    Certificates,
    /// The name of the schema is invalid.
    #[error(
        "{name:?} is not a valid schema name for a cache: use lower case letters, digits and _, 63 at most, no digit first, and not pg_"
    )]
    Schema {
        /// The name.
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_shown_nowhere() {
        let password = "p4ss-canary";
        let texts = [
            format!("postgresql://me:{password}@db.example/fleet"),
            format!("host=/run/postgresql user=me password={password} dbname=fleet"),
        ];
        for text in texts {
            let postgres = Postgres::new(&text).unwrap();
            assert!(!format!("{postgres:?} {}", postgres.server()).contains(password));
        }
        let refused = [
            format!("postgresql://me:{password}@{password}@db/fleet?x"),
            format!("password={password} {password}"),
            format!("postgresql://me:{password}@db/fleet?sslmode=verify-full"),
            format!("postgresql://me:{password}@/fleet?{password}=1"),
            format!("password={password}"),
        ];
        for text in refused {
            let error = Postgres::new(&text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains(password), "{error}");
        }
    }

    #[test]
    fn only_another_machine_is_exposed_in_plain_text() {
        let is_exposed = |connection: &str| Postgres::new(connection).unwrap().is_exposed();
        for local in [
            "postgresql://me@localhost/fleet",
            "postgresql://me@127.0.0.1:5433/fleet",
            "postgresql://me@[::1]/fleet",
            "postgresql:///fleet?host=/run/postgresql",
            "host=localhost,127.1.2.3,/run/postgresql",
            "host=db.example hostaddr=127.0.0.1",
            "hostaddr=::ffff:127.0.0.1",
        ] {
            assert!(!is_exposed(local), "{local}");
        }
        for other in [
            "postgresql://me@db.example/fleet",
            "postgresql://me@db.example/fleet?sslmode=disable",
            "postgresql://me@db.example/fleet?sslmode=prefer",
            "postgresql://me@10.0.0.1/fleet",
            "postgresql://me@0.0.0.0/fleet",
            "host=localhost,db.example",
            "host=localhost.example",
            "host=localhost hostaddr=10.0.0.1",
            "hostaddr=::1,10.0.0.1",
        ] {
            assert!(is_exposed(other), "{other}");
            let allowed = Postgres::new(other).unwrap().allow_plain_text();
            assert!(!allowed.is_exposed(), "{other}");
        }
    }

    #[test]
    fn certificates_have_to_be_readable() {
        for pem in [
            "",
            "no",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        ] {
            let postgres = Postgres::new("host=db").unwrap();
            let refused = postgres.root_certificates(pem).map(drop).unwrap_err();
            assert_eq!(refused, PostgresError::Certificates);
        }
    }

    #[test]
    fn a_schema_has_a_plain_name() {
        let postgres = Postgres::new("host=db").unwrap();
        for name in ["a", "_a1", "fleet_east"] {
            assert!(postgres.clone().schema(name).is_ok(), "{name}");
        }
        for name in ["", "1a", "A", "a\"; DROP", "a-b", "pg_a", &"a".repeat(64)] {
            assert!(postgres.clone().schema(name).is_err(), "{name}");
        }
    }
}
