//! Warm restarts: saving a kind's store to a file, from which the next start continues.

mod file;
mod header;
mod keys;
mod sealed;
mod source;
mod store;

pub(crate) use header::{Cold, FORMAT, Found, Header};
pub use source::{WarmIdentity, WarmObjects, WarmSource, WarmSourceError};
pub(crate) use store::{ClusterUid, WarmStore};
