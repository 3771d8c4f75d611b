//! The cache in SQLite: one file, one writer, and readers beside it.

mod error;
mod file;
mod params;
mod reader;
mod readers;
mod writer;

pub use error::StorageError;
pub(crate) use file::Database;
pub(crate) use reader::{Count, Found, Read, ReadError, Tables};
pub(crate) use readers::Readers;
pub(crate) use writer::{Op, Reached, Writer};

#[cfg(test)]
mod associated_tests;
#[cfg(test)]
mod tests;
