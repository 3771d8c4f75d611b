//! The console over HTTP, on a cluster in memory and a loopback socket.

mod bench;

mod access;
mod actions;
mod blocked;
mod canary;
mod health;
mod life;
mod metrics;
#[cfg(feature = "operator")]
mod metrics_documents;
#[cfg(feature = "operator")]
mod metrics_program;
#[cfg(feature = "operator")]
mod metrics_prometheus;
mod operator;
#[cfg(feature = "operator")]
mod promql;
mod routes;
