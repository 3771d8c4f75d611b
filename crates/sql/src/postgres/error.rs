//! Errors of the server, without values of rows.

use std::error::Error as _;

use tokio_postgres::Error;

/// Returns whether the server refuses a value: data exceptions, limits of a row, and constraints.
pub(super) fn is_of_value(error: &Error) -> bool {
    /// Classes of codes: data exception, integrity constraint violation, program limit exceeded.
    const CLASSES: [&str; 3] = ["22", "23", "54"];
    let code = error.as_db_error().map(|said| said.code().code());
    code.and_then(|code| code.get(..2))
        .is_some_and(|class| CLASSES.contains(&class))
}

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
