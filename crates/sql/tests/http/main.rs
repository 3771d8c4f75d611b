//! The cache over HTTP, on a cluster in memory and a loopback socket.

mod auth;
mod authorize;
mod bench;
mod bytes;
mod chromium;
mod errors;
mod explorer_page;
mod reviews;
mod revisions;
mod routes;
mod stop;
mod watch;
