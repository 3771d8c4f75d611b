//! SQLite: one file or memory, and connections to it.

mod connection;
mod file;

pub(crate) use file::Database;
