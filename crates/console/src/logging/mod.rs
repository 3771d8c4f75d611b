//! Log lines for people, or as JSON.
//!
//! [`init`] is enough for most programs: it writes lines for people to stderr, filtered by `RUST_LOG`, or JSON if
//! `LOG_FORMAT` is `json`. [`Logging::builder`] has the options. [`LogFilter`] changes the filter of a running program.
//!
//! ```no_run
//! let _logging = lariat::console::logging::init()?;
//! tracing::info!("starting");
//! # Ok::<(), lariat::console::logging::LoggingError>(())
//! ```
//!
//! A line for people has the time (UTC), the level, the object and the handler, and the message:
//!
//! ```text
//! 18:35:06.123Z INFO  Deployment: cache has synced  objects=1000 elapsed=41.2ms
//! 18:35:07.001Z WARN  Deployment shop/web (scale): handler failed, retrying: no quota left  attempt=1 retry_in=1s
//! ```
//!
//! Inside a span of Lariat, kind, key and handler are taken from the span. Fields of other spans are at the end of the
//! line. JSON lines have the fields of all spans.

mod error;
mod fields;
mod filter;
mod json;
mod layer;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
mod setup;
mod text;

pub use error::LoggingError;
pub use filter::{FilterError, LogFilter};
pub use layer::Format;
#[cfg(feature = "otlp")]
pub use otlp::{Otlp, OtlpError};
pub use setup::{Logging, LoggingBuilder, init};
