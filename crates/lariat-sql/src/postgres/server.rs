//! Opening sessions.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use super::error::describe;
use super::options::Postgres;
use super::schema::{self, Refused};
use super::session::Session;
use crate::sql::{Connection, StorageError};

/// A schema of a database.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    options: Arc<Postgres>,
    name: String,
}

impl Server {
    pub(crate) fn new(options: Postgres) -> Self {
        Self {
            name: options.server(),
            options: Arc::new(options),
        }
    }

    /// Opens a session that may come to write, and makes the schema if it is not there.
    pub(crate) fn open(&self) -> Result<Session, StorageError> {
        let mut session = self.connect("lariat-sql")?;
        let version = schema::check(&mut session).map_err(|why| self.refused(why))?;
        // A process that is stopped in the middle gives up what it has locked after a while. Who writes waits for none who
        // reads, but where tables are dropped.
        let mut settings = "SET idle_in_transaction_session_timeout = '60s'; SET lock_timeout = '10s';
            SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;"
            .to_owned();
        if version >= 14 {
            settings.push_str("SET idle_session_timeout = '30s';");
        }
        session.run(&settings)?;
        let prepared = schema::prepare(&mut session, &self.options.schema, !self.lock());
        prepared.map_err(|why| self.refused(why))?;
        session.lock_by(self.lock());
        Ok(session)
    }

    /// Opens a session that only reads.
    pub(crate) fn open_to_read(&self) -> Result<Session, StorageError> {
        let mut session = self.connect("lariat-sql reader")?;
        let timeout = self.options.statement.as_millis();
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
        let connected = runtime.block_on(config.connect(NoTls));
        let (client, connection) = connected.map_err(|error| {
            let why = describe(&error);
            let what = "check that it runs, and the host, the user, the password and the database of the connection string";
            self.refused(Refused::No(format!("{why}: {what}")))
        })?;
        let mut driver = JoinSet::new();
        let driven = async move {
            // Whoever uses it gets the error.
            let _ = connection.await;
        };
        driver.spawn_on(driven, &runtime);
        let mut session = Session::new(client, driver, runtime, self.name.clone());
        // Plans of large statements are not worth the time to compile them.
        session.run(&format!(
            "SET search_path TO \"{}\"; SET jit = off;",
            self.options.schema
        ))?;
        Ok(session)
    }

    /// Returns the number of the lock that the process has who writes; those of different schemas differ.
    fn lock(&self) -> i64 {
        crate::sql::number_of(&format!("lariat-sql writer of {}", self.options.schema))
    }

    fn refused(&self, why: Refused) -> StorageError {
        match why {
            Refused::Failed(error) => error,
            Refused::No(why) => StorageError::Server {
                server: self.name.clone(),
                why,
            },
        }
    }
}
