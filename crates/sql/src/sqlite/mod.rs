//! SQLite: one file or memory, and connections to it.

mod connection;
mod error;
mod file;
mod lock;
mod private;

pub(crate) use file::Database;

/// The edition of a file, which has one process.
pub(crate) const EDITION: i64 = 1;
