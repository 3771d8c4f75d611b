//! SQLite: one file or memory, and connections to it.

mod connection;
mod error;
mod file;
mod lock;

pub(crate) use file::Database;
