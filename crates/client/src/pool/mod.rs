//! HTTP/2 connections to one server, each filled up to the server's limit.
//!
//! It should go to kube-client: `docs/upstream.md` has the interface, and what is missing there.

mod health;
mod line;
mod load;
mod open;
mod pool;

pub(crate) use self::health::{Health, Replacements, Sign};
pub use self::line::Connection;
pub(crate) use self::open::{
    CONNECTION_WINDOW, OpenError, PING_AFTER, PING_TIMEOUT, STREAM_WINDOW,
};
pub(crate) use pool::{Pool, Sent};
