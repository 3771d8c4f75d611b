//! PostgreSQL: one schema of a database, and connections to it.
//!
//! All calls block, and run on threads for blocking work. The writing process holds an advisory lock in the session
//! that it writes with: when the session ends, for any reason, its transaction and its right to write end too. Each
//! transaction also checks that no other process has raised the epoch, because a connection pool in between may give
//! the lock to another session.
//!
//! Processes with other kinds or fields, or of a version of Lariat with another layout of tables, use other tables of
//! the schema: lock, epoch and names of tables have a number that depends on these.

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
pub(crate) use schema::FORM;
pub(crate) use server::Server;
