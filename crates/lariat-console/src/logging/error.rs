//! Why logging cannot be set up.

use lariat_core::debug_as_description;

use super::filter::FilterError;
#[cfg(feature = "otlp")]
use super::otlp::OtlpError;

/// Logging cannot be set up.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LoggingError {
    /// The filter cannot be read.
    #[error("the filter {} cannot be read", origin(.variable))]
    Filter {
        /// The environment variable that has the filter; `None` if the program has set it.
        variable: Option<String>,
        /// What is wrong with it.
        #[source]
        source: FilterError,
    },
    /// There is no such format.
    #[error(
        "the environment variable {variable} has the format `{format}`; write `text` or `json`"
    )]
    Format {
        /// The environment variable.
        variable: String,
        /// Its value.
        format: String,
    },
    /// The program has a subscriber of `tracing` already.
    #[error(
        "the program logs already: initialise logging once, before anything else sets a subscriber"
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
