//! The console over HTTP, on a cluster in memory and a loopback socket.

mod bench;
mod client;
mod logs;

mod access;
mod actions;
mod canary;
mod health;
mod life;
mod metrics;
#[cfg(feature = "operator")]
mod operator;
mod routes;
