//! What the server says, without values.

use std::error::Error as _;

use tokio_postgres::Error;

/// Returns the text of an error: a message and its code, but no details, in which values of rows may be.
pub(super) fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
