//! Errors of the server, without values of rows.

use std::error::Error as _;

use tokio_postgres::Error;

/// Returns the message and the code of an error.
///
/// Details are left out, because they may contain values of rows.
pub(super) fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
