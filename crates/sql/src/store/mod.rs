//! Operations on a database: opening kinds, writing and reading.

mod counts;
mod database;
mod kept;
mod kinds;
mod reader;
mod readers;
mod rows;
#[cfg(feature = "postgres")]
mod turns;
#[cfg(feature = "postgres")]
mod unused;
mod writer;

pub(crate) use database::Database;
#[cfg(feature = "postgres")]
pub(crate) use kinds::edition;
pub(crate) use kinds::tables;
pub(crate) use reader::Tables;
pub(crate) use readers::{Reader, Readers};
#[cfg(feature = "postgres")]
pub(crate) use turns::Stored;
pub(crate) use writer::{Reached, Writer};

#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod associated_tests;
#[cfg(all(test, feature = "postgres"))]
mod postgres_tests;
#[cfg(test)]
mod sealed_tests;
#[cfg(test)]
mod tests;
