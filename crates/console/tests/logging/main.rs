//! Logs of programs on the embedded cluster, as text and as JSON, and exported spans.

mod canary;
mod events;
mod filters;
mod lines;
#[cfg(feature = "otlp")]
mod otlp;
mod process;
mod quiet;
mod spans;
mod support;
