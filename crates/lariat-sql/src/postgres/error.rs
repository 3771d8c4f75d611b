//! What the server says, without values.

use std::error::Error as _;

use tokio_postgres::Error;

/// Returns the message and the code of an error.
///
/// Details are left out, for they may have values of rows in them.
pub(super) fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
