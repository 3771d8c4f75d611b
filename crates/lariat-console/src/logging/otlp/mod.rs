//! The export of spans to an OpenTelemetry collector.

mod client;
mod conventions;
mod otlp;

pub(super) use otlp::Exporting;
pub use otlp::{Otlp, OtlpError};
