//! SQL: which tables a kind has, the statements that a query becomes, and what a database does with them.
//!
//! Names come from numbers alone, and values are always parameters: no text of a user or an object becomes part of a statement.

mod connection;
mod dialect;
mod error;
mod layout;
mod select;
mod statement;

pub(crate) use connection::{Columns, Connection, Transaction};
pub(crate) use dialect::Dialect;
pub use error::StorageError;
pub(crate) use layout::Layout;
pub(crate) use select::{From, Select};
pub(crate) use statement::{Arg, List, Param, Statement};
