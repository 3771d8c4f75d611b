//! Persistence: the store's changes as rows of an SQLite file.
//!
//! The file has the shape of [kine]: one append-only table of changes by revision, and a little about
//! the whole. Memory stays the source of every read; the file is read once, at the start.
//!
//! A [`LogWriter`] takes from the store whatever is unwritten, writes it in one transaction on a thread for
//! blocking work, and has it announced and answered.
//!
//! [kine]: https://github.com/k3s-io/kine

mod data;
mod error;
mod load;
mod log;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use data::{Data, Opened};
pub(crate) use writer::LogWriter;
