//! Tests of webhooks over TLS on a loopback socket, called as by an API server, with caches on the embedded cluster.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod support;

mod admission;
mod budget;
mod certificates;
mod configuration;
mod conversion;
mod faults;
#[cfg(feature = "metrics")]
mod metrics;
mod migration;
mod releases;
mod renames;
mod secrets;
mod steps;
mod stopping;
