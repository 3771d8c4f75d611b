//! Which database it is.

use std::path::PathBuf;

use crate::sql::{Connection, StorageError};
use crate::sqlite;

/// A database that can be opened by several connections.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    Sqlite(sqlite::Database),
}

impl Database {
    pub(crate) fn in_memory() -> Self {
        Self::Sqlite(sqlite::Database::in_memory())
    }

    pub(crate) fn in_file(path: impl Into<PathBuf>) -> Self {
        Self::Sqlite(sqlite::Database::in_file(path))
    }

    /// Opens it for writing.
    pub(crate) fn open(&self) -> Result<Box<dyn Connection>, StorageError> {
        match self {
            Self::Sqlite(database) => Ok(Box::new(database.open()?)),
        }
    }

    /// Opens it for reading.
    pub(crate) fn open_to_read(&self) -> Result<Box<dyn Connection>, StorageError> {
        match self {
            Self::Sqlite(database) => Ok(Box::new(database.open_to_read()?)),
        }
    }
}
