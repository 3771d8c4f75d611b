//! Errors of the database.

use std::path::PathBuf;
use std::sync::Arc;

use lariat_core::Gvk;
use lariat_seal::SealError;

/// The error of a database that cannot be opened, read or written.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The file cannot be used.
    #[error("the cache {} cannot be {what}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operation that failed: opened, read, written.
        what: &'static str,
        /// The error of the operating system or SQLite.
        reason: String,
    },
    /// Another cache uses the file.
    #[error(
        "the cache {} is in use{}: stop that cache first, or use another file for this one",
        path.display(), of_process(*process)
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// The process that uses it; `None` if that cannot be read.
        process: Option<u32>,
    },
    /// Encrypted data cannot be decrypted, or data cannot be encrypted.
    #[error("the encrypted part of the SQL cache: {0}")]
    Seal(Arc<SealError>),
    /// An encrypted row is damaged.
    #[error("an encrypted row of {kind} is damaged")]
    Row {
        /// The kind.
        kind: Gvk,
    },
    /// A column has another type: another program has changed the tables.
    #[error("a column of the SQL cache is not {expected}: another program has changed it")]
    Column {
        /// The expected type.
        expected: &'static str,
    },
    /// The database server cannot be reached, or refuses the connection.
    #[error("the PostgreSQL server {server} cannot be used: {reason}")]
    Server {
        /// The hosts and the database, without user and password.
        server: String,
        /// What is wrong, and how to fix it.
        reason: String,
    },
    /// PostgreSQL refuses a statement, or the connection is lost.
    #[error("PostgreSQL at {server}: {reason}")]
    Postgres {
        /// The hosts and the database, without user and password.
        server: String,
        /// The error of the server.
        reason: String,
    },
    /// The database refuses a value, such as one that is too long for an index.
    #[error("the database refuses a value: {reason}")]
    Value {
        /// The error of the database, without the value.
        reason: String,
    },
    /// Another process writes the cache now.
    #[error("another process writes the SQL cache now: this one only reads it")]
    Superseded,
    /// A query was interrupted.
    #[error("the query was interrupted")]
    Interrupted,
    /// SQLite refuses a statement.
    #[error("SQLite: {0}")]
    Sqlite(String),
}

impl StorageError {
    /// Returns whether only the values of a statement are at fault, so that other rows can be written.
    pub(crate) fn is_of_value(&self) -> bool {
        matches!(self, Self::Value { .. })
    }
}

fn of_process(process: Option<u32>) -> String {
    process.map_or_else(String::new, |process| format!(" by process {process}"))
}

impl From<SealError> for StorageError {
    fn from(error: SealError) -> Self {
        Self::Seal(Arc::new(error))
    }
}

impl From<rusqlite::Error> for StorageError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::OperationInterrupted) => Self::Interrupted,
            Some(rusqlite::ErrorCode::TooBig | rusqlite::ErrorCode::ConstraintViolation) => {
                Self::Value {
                    reason: format!("SQLite: {error}"),
                }
            }
            // Messages of SQLite contain tables, columns and codes, but no values.
            _ => Self::Sqlite(error.to_string()),
        }
    }
}
