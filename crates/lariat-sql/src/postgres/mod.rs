//! PostgreSQL: one schema of a database, and connections to it.
//!
//! All of it blocks, on threads that may. One process holds an advisory lock, on the session with which it writes: a session
//! that ends, for whatever reason, has ended its transaction and its right to write. Beside that each transaction looks
//! whether another has counted the epoch on, for a pool of connections in between may give the lock to another session.

mod copy;
mod error;
mod options;
mod schema;
mod server;
mod session;
mod text;
mod values;

pub use options::{Postgres, PostgresError};
pub(crate) use server::Server;
