//! Clients on servers of the tests, on real sockets and in virtual time.

mod dark;
mod server;

mod credentials;
#[cfg(feature = "rustls-tls")]
mod credentials_certificates;
mod credentials_reread;
#[cfg(unix)]
mod fences;
mod informers;
mod liveness;
mod proxies;
mod refusals;
mod replacements;
mod separate;
mod transport;

const MINUTE: std::time::Duration = std::time::Duration::from_secs(60);
