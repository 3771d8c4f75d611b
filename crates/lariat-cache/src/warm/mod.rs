//! Warm restarts: a kind's store in a file, from which the next start goes on.

mod file;
mod header;
mod keys;
mod sealed;
mod source;
mod store;

pub(crate) use header::{Cold, FORMAT, Found, Header};
pub use source::{WarmIdentity, WarmObjects, WarmSource, WarmSourceError};
pub(crate) use store::{ClusterUid, WarmStore};
