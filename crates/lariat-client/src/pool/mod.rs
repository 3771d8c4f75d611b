//! HTTP/2 connections to one server, each filled up to the server's limit.

mod health;
mod line;
mod open;
mod pool;

pub(super) use self::health::{Health, Replacements, Sign};
pub(crate) use self::line::Connection;
pub(super) use self::open::{
    CONNECTION_WINDOW, OpenError, PING_AFTER, PING_TIMEOUT, STREAM_WINDOW,
};
pub(super) use pool::{Pool, Sent};
