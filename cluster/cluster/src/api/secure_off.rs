//! The twin of the TLS module for builds without it.

use std::io;
use std::net::IpAddr;

/// Connections are plain.
#[derive(Debug, Clone)]
pub(crate) struct ServingTls;

/// Accepts connections as they are.
#[derive(Debug, Clone)]
pub(crate) struct Acceptor;

impl ServingTls {
    pub(crate) fn none() -> Self {
        Self
    }

    pub(crate) fn ready(self, _address: Option<IpAddr>) -> io::Result<Self> {
        Ok(self)
    }

    pub(crate) fn scheme(&self) -> &'static str {
        "http"
    }

    pub(crate) fn authority(&self) -> Option<&str> {
        None
    }

    pub(crate) fn acceptor(&self) -> io::Result<Acceptor> {
        Ok(Acceptor)
    }
}

impl Acceptor {
    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<S> {
        Ok(stream)
    }
}
