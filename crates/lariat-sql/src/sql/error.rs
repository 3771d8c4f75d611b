//! What goes wrong with the file of a cache.

use std::path::PathBuf;
use std::sync::Arc;

use lariat_core::Gvk;
use lariat_seal::SealError;

/// A cache that cannot be opened, read or written.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The file cannot be used.
    #[error("the cache {} cannot be {what}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried: opened, read, written.
        what: &'static str,
        /// What the operating system or SQLite says.
        why: String,
    },
    /// Another cache uses the file.
    #[error(
        "the cache {} is in use{}: stop that cache first, or give this one a file of its own",
        path.display(), of_process(*process)
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// The process that uses it; none if it cannot be read.
        process: Option<u32>,
    },
    /// What is encrypted cannot be opened, or not be sealed.
    #[error("the encrypted part of the SQL cache: {0}")]
    Seal(Arc<SealError>),
    /// An encrypted row is not one of its kind.
    #[error("an encrypted row of {kind} is damaged")]
    Row {
        /// The kind.
        kind: Gvk,
    },
    /// A column is not of its type: the tables were changed by another program.
    #[error("a column of the SQL cache is not {expected}: another program has changed it")]
    Column {
        /// What it should be.
        expected: &'static str,
    },
    /// The server of the database cannot be reached, or does not let the cache in.
    #[error("the PostgreSQL server {server} cannot be used: {why}")]
    Server {
        /// Its hosts and the database, without user and password.
        server: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// PostgreSQL refuses a statement, or the connection is lost.
    #[error("PostgreSQL at {server}: {why}")]
    Postgres {
        /// Its hosts and the database, without user and password.
        server: String,
        /// What it says.
        why: String,
    },
    /// Another process writes the cache now.
    #[error("another process has begun to write the SQL cache: this one only reads it from now on")]
    Superseded,
    /// A query was given up while the database answered it.
    #[error("the query was interrupted")]
    Interrupted,
    /// SQLite refuses a statement.
    #[error("SQLite: {0}")]
    Sqlite(String),
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
            // Its texts name tables, columns and codes, never values.
            _ => Self::Sqlite(error.to_string()),
        }
    }
}
