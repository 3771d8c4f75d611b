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

pub(crate) use connection::{Columns, Connection, Transaction};
pub(crate) use dialect::Dialect;
pub use error::StorageError;
pub(crate) use layout::Layout;
pub(crate) use select::{From, Select};
pub(crate) use statement::{Arg, List, Param, Statement};

/// The part of a long text or of long bytes that an index has, for one entry has 2,700 bytes at most in PostgreSQL.
const BEGINNING: &str = "1, 300";

/// Returns a number that two texts do not share but by a chance of one in 2⁶³; FNV-1a does not change between versions.
pub(crate) fn number_of(text: &str) -> i64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 1).cast_signed()
}
