//! Warm restarts: saving a kind's store to a file, from which the next start continues.
//!
//! `store` selects the file of a kind and whether it is plain (`file`) or sealed (`sealed`, with `keys`). `header`
//! decides whether a file may be used. `source` is the interface for objects that are stored elsewhere.

mod file;
mod header;
mod keys;
mod sealed;
mod source;
mod store;

pub(crate) use header::{Cold, FORMAT, Found, Header};
pub use source::{WarmIdentity, WarmObjects, WarmSource, WarmSourceError};
pub(crate) use store::{ClusterUid, WarmStore};
