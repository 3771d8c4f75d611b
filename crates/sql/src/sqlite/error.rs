//! Errors of files.

use std::path::Path;

use crate::sql::StorageError;

pub(crate) fn file_error(
    path: &Path,
    what: &'static str,
    reason: &dyn std::fmt::Display,
) -> StorageError {
    StorageError::File {
        path: path.to_owned(),
        what,
        reason: reason.to_string(),
    }
}
