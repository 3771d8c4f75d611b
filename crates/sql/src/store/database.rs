//! Which database a cache is in.

use std::path::PathBuf;
#[cfg(feature = "postgres")]
use std::time::Duration;

use crate::sql::{Connection, Dialect, StorageError};
use crate::sqlite;

/// A database that can be opened by several connections.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    Sqlite(sqlite::Database),
    #[cfg(feature = "postgres")]
    Postgres(crate::postgres::Server),
}

impl Database {
    pub(crate) fn in_memory() -> Self {
        Self::Sqlite(sqlite::Database::in_memory())
    }

    pub(crate) fn in_file(path: impl Into<PathBuf>) -> Self {
        Self::Sqlite(sqlite::Database::in_file(path))
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn on_server(
        options: crate::postgres::Postgres,
        timeout: Duration,
        edition: i64,
    ) -> Self {
        Self::Postgres(crate::postgres::Server::new(options, timeout, edition))
    }

    /// Returns how its statements are written.
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Returns the number that processes have in common if they share tables.
    pub(crate) fn edition(&self) -> i64 {
        match self {
            Self::Sqlite(_) => sqlite::EDITION,
            #[cfg(feature = "postgres")]
            Self::Postgres(server) => server.edition(),
        }
    }

    /// Returns whether other processes may write the database too.
    pub(crate) fn is_shared(&self) -> bool {
        self.dialect() == Dialect::Postgres
    }

    /// Returns whether it is a file, which the next process reads.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::Sqlite(database) if database.is_file())
    }

    /// Opens the database for writing.
    pub(crate) fn open(&self) -> Result<Box<dyn Connection>, StorageError> {
        match self {
            Self::Sqlite(database) => Ok(Box::new(database.open()?)),
            #[cfg(feature = "postgres")]
            Self::Postgres(server) => Ok(Box::new(server.open()?)),
        }
    }

    /// Opens the database for reading.
    pub(crate) fn open_to_read(&self) -> Result<Box<dyn Connection>, StorageError> {
        match self {
            Self::Sqlite(database) => Ok(Box::new(database.open_to_read()?)),
            #[cfg(feature = "postgres")]
            Self::Postgres(server) => Ok(Box::new(server.open_to_read()?)),
        }
    }
}
