//! SQL: which tables a kind has, the statements that a query becomes, and what a database does with them.
//!
//! Names come from numbers alone, and values are always parameters: no text of a user or an object becomes part of a statement.

mod connection;
mod dialect;
mod error;
mod joins;
mod layout;
mod select;
mod statement;
mod tables;

use ring::digest::{SHA256, digest};

pub(crate) use connection::{Columns, Connection, Transaction};
pub(crate) use dialect::Dialect;
pub use error::StorageError;
pub(crate) use layout::Layout;
pub(crate) use select::{From, Select};
pub(crate) use statement::{Arg, List, Param, Statement};

/// The part of a long text or of long bytes that an index has, for one entry has 2,700 bytes at most in PostgreSQL.
const BEGINNING: &str = "1, 300";

/// Returns a number that two texts do not share but by a chance of one in 2⁶³: a part of SHA-256.
pub(crate) fn number_of(text: &str) -> i64 {
    let hash = digest(&SHA256, text.as_bytes());
    let first = hash.as_ref().first_chunk().copied().unwrap_or_default();
    (u64::from_be_bytes(first) >> 1).cast_signed()
}
