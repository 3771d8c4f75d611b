//! The export of spans to an OpenTelemetry collector.
//!
//! `otlp` sets up the export, `conventions` gives spans their conventional names, and `client` sends them.

mod client;
mod conventions;
mod otlp;

pub(super) use otlp::Exporting;
pub use otlp::{Otlp, OtlpError};
