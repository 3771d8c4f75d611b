//! TLS in front of HTTP.

mod generate;
mod tls;

pub(crate) use tls::{Acceptor, ServingTls};
