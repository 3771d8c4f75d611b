//! SQL: the tables of a kind, the statements of a query, and connections.
//!
//! Names come from numbers alone, and values are always parameters: no text of a user or an object becomes part of a
//! statement.

mod connection;
mod dialect;
mod error;
mod joins;
mod layout;
mod select;
mod sizes;
mod statement;
mod tables;

use ring::digest::{SHA256, digest};

pub(crate) use connection::{Columns, Connection, Transaction};
pub(crate) use dialect::Dialect;
pub use error::StorageError;
pub(crate) use layout::Layout;
pub(crate) use select::{From, Select};
pub(crate) use sizes::sizes;
pub(crate) use statement::Statement;

/// The part of a long text or byte string that an index contains.
///
/// PostgreSQL limits index entries to 2,700 bytes.
const BEGINNING: &str = "1, 300";

/// Returns a number for a text, from its SHA-256.
///
/// Two texts have the same number with a probability of 2⁻⁶³.
pub(crate) fn number_of(text: &str) -> i64 {
    let hash = digest(&SHA256, text.as_bytes());
    let first = hash.as_ref().first_chunk().copied().unwrap_or_default();
    (u64::from_be_bytes(first) >> 1).cast_signed()
}
