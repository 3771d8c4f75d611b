//! Webhooks over TLS on a loopback socket, called as API servers call them, with caches on a cluster in memory.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod support;

mod admission;
mod certificates;
mod configuration;
mod conversion;
mod faults;
#[cfg(feature = "metrics")]
mod metrics;
mod migration;
mod releases;
mod secrets;
mod stopping;
