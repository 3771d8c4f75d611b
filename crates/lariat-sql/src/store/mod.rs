//! What is done with a database: kinds, writing and reading.

mod database;
mod kinds;
mod reader;
mod readers;
mod rows;
mod writer;

pub(crate) use database::Database;
pub(crate) use kinds::{Stored, tables};
pub(crate) use reader::{Count, Found, Read, ReadError, Tables};
pub(crate) use readers::Readers;
pub(crate) use writer::{Op, Reached, Writer};

#[cfg(test)]
mod associated_tests;
#[cfg(all(test, feature = "postgres"))]
mod postgres_tests;
#[cfg(test)]
mod tests;
