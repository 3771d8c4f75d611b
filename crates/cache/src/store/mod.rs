//! The raw store of one kind: the only place where its objects are stored.
//!
//! The path of a change:
//!
//! 1. `raw_store`: `apply` takes the deltas of a watch, `wrote` and `deleted` the answers to own writes.
//! 2. `writer` and `own`: one writer at a time finds out which event this is, compared with the cached state and with
//!    what this process has written.
//! 3. `table`: decides what the event changes.
//! 4. `object` and `body`: create the new state; it is packed later.
//! 5. `objects`: insert it by key, where readers see it at once, and then for lists: in order (`tree`) and into the
//!    indexes (`index`), in batches.
//!
//! `listing` applies lists by mark and sweep. `reached` records up to which version the store is complete.

mod raw_store;

mod change;
mod listing;
mod writer;

mod own;
mod reached;
mod table;

mod objects;
mod tree;

mod index;
mod query;

mod body;
mod decoded;
mod error;
mod object;
mod packing;

#[cfg(test)]
mod tests;

pub(crate) use body::Age;
pub use body::{ObjectJson, Storage};
pub use change::Change;
pub(crate) use change::{Content, Delta};
pub use error::{DecodeError, IndexError};
pub(crate) use listing::Listing;
pub use object::CachedObject;
pub use query::Query;
pub use raw_store::Store;
pub use tree::Snapshot;
