//! The error of setting up logging.

use lariat_core::debug_as_description;

use super::filter::FilterError;
#[cfg(feature = "otlp")]
use super::otlp::OtlpError;

/// The error of setting up logging. Nothing has changed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LoggingError {
    /// The filter cannot be read.
    #[error("the filter {} cannot be read", origin(.variable))]
    Filter {
        /// The environment variable with the filter; `None` if the program has set it.
        variable: Option<String>,
        /// Why the filter cannot be read.
        #[source]
        source: FilterError,
    },
    /// The environment variable names an unknown format.
    #[error(
        "the environment variable {variable} has the format `{format}`; write `text` or `json`"
    )]
    Format {
        /// The environment variable.
        variable: String,
        /// Its value.
        format: String,
    },
    /// The program already has a subscriber of `tracing`.
    #[error(
        "the program already has a tracing subscriber; initialise logging once, before any other subscriber"
    )]
    AlreadySet,
    /// Spans cannot be exported.
    #[cfg(feature = "otlp")]
    #[error("spans cannot be exported")]
    Otlp(#[from] OtlpError),
}

debug_as_description!(LoggingError);

fn origin(variable: &Option<String>) -> String {
    match variable {
        Some(variable) => format!("of the environment variable {variable}"),
        None => "of the log".to_owned(),
    }
}
