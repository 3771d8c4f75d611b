//! The cache in SQLite: one file, one writer, and readers beside it.

mod error;
mod file;
mod params;
mod reader;
mod writer;

pub use error::StorageError;
pub(crate) use file::{Database, Place};
pub(crate) use reader::{Answer, Found, read};
pub(crate) use writer::{Op, Writer};

#[cfg(test)]
mod tests;
