//! The error of a data file.

use std::io;
use std::path::PathBuf;

use rusqlite::{Error, ErrorCode};

/// The error of a data file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DataError {
    #[error("cannot use the data file {path}: {source}", path = path.display())]
    Sqlite { path: PathBuf, source: Error },
    #[error("the data file {path} cannot be restricted to its owner: {source}", path = path.display())]
    Private { path: PathBuf, source: io::Error },
    #[error("the data file {path} is in use by another cluster", path = path.display())]
    InUse { path: PathBuf },
    #[error("the file {path} is not a data file of a cluster", path = path.display())]
    Foreign { path: PathBuf },
    #[error(
        "the data file {path} has format {format}, and this version reads format {known}",
        path = path.display(),
    )]
    Format {
        path: PathBuf,
        format: i64,
        known: i64,
    },
    #[error("the data file {path} has a key of tokens that cannot be used: {reason}", path = path.display())]
    Key { path: PathBuf, reason: String },
    #[error("the data file {path} is damaged at version {revision}: {what}", path = path.display())]
    Damaged {
        path: PathBuf,
        revision: u64,
        what: String,
    },
}

impl DataError {
    /// Adds the name of the file to an error of SQLite.
    pub(super) fn of(path: &std::path::Path, source: Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse { path },
            Some(ErrorCode::NotADatabase) => Self::Foreign { path },
            _ => Self::Sqlite { path, source },
        }
    }

    pub(super) fn into_io(self) -> io::Error {
        let kind = match &self {
            Self::Sqlite { source, .. } => match source.sqlite_error_code() {
                Some(ErrorCode::CannotOpen) => io::ErrorKind::NotFound,
                Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                    io::ErrorKind::PermissionDenied
                }
                _ => io::ErrorKind::Other,
            },
            Self::InUse { .. } => io::ErrorKind::ResourceBusy,
            Self::Private { source, .. } => source.kind(),
            Self::Foreign { .. }
            | Self::Format { .. }
            | Self::Key { .. }
            | Self::Damaged { .. } => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, self)
    }
}
