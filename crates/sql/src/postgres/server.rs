//! The server: opening sessions.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Error, NoTls, Socket};

use super::error::describe;
use super::options::Postgres;
use super::schema::{self, Refused};
use super::session::{Canceler, Session};
use crate::sql::{Connection, StorageError};

/// A schema of a database.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    options: Arc<Postgres>,
    /// The timeout of statements that read; zero means none.
    timeout: Duration,
    /// The number that processes have in common if they share tables.
    edition: i64,
    name: String,
}

impl Server {
    pub(crate) fn new(options: Postgres, timeout: Duration, edition: i64) -> Self {
        Self {
            name: options.server(),
            timeout,
            edition,
            options: Arc::new(options),
        }
    }

    pub(crate) fn edition(&self) -> i64 {
        self.edition
    }

    /// Opens a session that can claim the right to write; creates the schema.
    pub(crate) fn open(&self) -> Result<Session, StorageError> {
        let mut session = self.connect("lariat-sql")?;
        let version = schema::check(&mut session).map_err(|reason| self.refused(reason))?;
        // A process that is suspended in a transaction loses its locks after a while. A write waits for reads only
        // where it drops tables.
        let mut settings = "SET idle_in_transaction_session_timeout = '60s'; SET lock_timeout = '10s';
            SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;"
            .to_owned();
        // Earlier versions do not have the setting.
        if version >= 14 {
            settings.push_str("SET idle_session_timeout = '30s';");
        }
        session.run(&settings)?;
        let schema = &self.options.schema;
        // Another number than that of the writer's lock: creating the schema must not wait for a writer.
        let lock = crate::sql::number_of(&format!("lariat-sql tables of {schema}"));
        let prepared = schema::prepare(&mut session, schema, lock);
        prepared.map_err(|reason| self.refused(reason))?;
        session.lock_by(self.lock());
        Ok(session)
    }

    /// Opens a session that only reads.
    pub(crate) fn open_to_read(&self) -> Result<Session, StorageError> {
        let mut session = self.connect("lariat-sql reader")?;
        // A killed process cannot interrupt its statements itself.
        let timeout = self
            .timeout
            .as_millis()
            .min(u128::from(i32::MAX.unsigned_abs()));
        session.run(&format!(
            "SET default_transaction_read_only = on; SET statement_timeout = {timeout};
             SET idle_in_transaction_session_timeout = '60s';"
        ))?;
        Ok(session)
    }

    fn connect(&self, name: &str) -> Result<Session, StorageError> {
        let runtime = Handle::current();
        let mut config = self.options.config.clone();
        config.application_name(name);
        let connected = match &self.options.tls {
            Some(tls) => runtime.block_on(connect(&config, tls.clone())),
            None if config.get_ssl_mode() == SslMode::Require => {
                let reason = "sslmode=require needs certificates to trust: give them by Postgres::root_certificates";
                return Err(self.refused(Refused::No(reason.to_owned())));
            }
            None if self.options.is_exposed() => {
                let reason = "its host is another machine, so that passwords and objects would cross the network in plain text: give certificates to trust by Postgres::root_certificates, or ask for it by Postgres::allow_plain_text";
                return Err(self.refused(Refused::No(reason.to_owned())));
            }
            None => runtime.block_on(connect(&config, NoTls)),
        };
        let (client, driver) = connected.map_err(|error| {
            let reason = describe(&error);
            let what = "check that it runs, and the host, the user, the password and the database of the connection string";
            self.refused(Refused::No(format!("{reason}: {what}")))
        })?;
        let canceler = Canceler::new(&client, self.options.tls.clone());
        let name = self.name.clone();
        let mut session = Session::new(client, driver, canceler, runtime, name, self.edition);
        // Plans of large statements are not worth the time to compile them.
        session.run(&format!(
            "SET search_path TO \"{}\"; SET jit = off;",
            self.options.schema
        ))?;
        Ok(session)
    }

    /// Returns the number of the lock of the process that writes.
    ///
    /// Different schemas and editions have different numbers.
    fn lock(&self) -> i64 {
        let (schema, edition) = (&self.options.schema, self.edition);
        crate::sql::number_of(&format!("lariat-sql writer {edition} of {schema}"))
    }

    fn refused(&self, reason: Refused) -> StorageError {
        match reason {
            Refused::Failed(error) => error,
            Refused::No(reason) => StorageError::Server {
                server: self.name.clone(),
                reason,
            },
        }
    }
}

/// Connects, and spawns a task that drives the socket.
async fn connect<T>(config: &Config, tls: T) -> Result<(Client, JoinSet<()>), Error>
where
    T: MakeTlsConnect<Socket, Stream: Send + 'static>,
{
    let (client, connection) = config.connect(tls).await?;
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        // The calls that use the client return the error.
        let _ = connection.await;
    });
    Ok((client, driver))
}
