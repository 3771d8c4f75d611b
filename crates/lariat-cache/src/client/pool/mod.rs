//! HTTP/2 connections to one server, each filled up to the server's limit.

mod line;
mod open;
mod pool;

pub(super) use self::open::{
    CONNECTION_WINDOW, OpenError, PING_AFTER, PING_TIMEOUT, STREAM_WINDOW,
};
pub(super) use pool::{Pool, Sent};
