//! PostgreSQL: one schema of a database, and connections to it.
//!
//! All calls block, and are made on threads that may block. The process that writes holds an advisory lock on the session with
//! which it writes: when the session ends, for whatever reason, so do its transaction and its right to write. Each
//! transaction also checks that no other process has raised the epoch, for a pool of connections in between may give the
//! lock to another session.

mod copy;
mod error;
mod options;
mod schema;
mod server;
mod session;
mod text;
mod tls;
mod values;

pub use options::{Postgres, PostgresError};
pub(crate) use server::Server;
