//! The raw store of one kind: the only place where its objects are stored.
//!
//! The path of a change: `raw_store` (`apply`) → `writer` (`put_newer`) → `own` (is it older than what this process
//! wrote?) → `objects` (the known state) → `object` (the new state) → `body/codec` (packed later) → `objects` again (by
//! key, then for lists) → `tree` (in order) and `index` (by other values than the key).

mod raw_store;

mod change;
mod listing;
mod writer;

mod own;
mod reached;

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
