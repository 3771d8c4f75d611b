//! What goes wrong with the file of a cache.

use std::path::PathBuf;

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
    /// SQLite refuses a statement.
    #[error("SQLite: {0}")]
    Sqlite(String),
}

impl From<rusqlite::Error> for StorageError {
    fn from(error: rusqlite::Error) -> Self {
        // Its texts name tables, columns and codes, never values.
        Self::Sqlite(error.to_string())
    }
}
