//! The cache over HTTP, on a cluster in memory and a loopback socket.

mod auth;
mod bench;
mod client;
mod errors;
mod routes;
mod stop;
mod watch;
