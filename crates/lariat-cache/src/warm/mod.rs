//! Warm restarts: a kind's store in a file, from which the next start goes on.

mod file;
mod keys;
mod sealed;
mod source;
mod store;

pub use source::{WarmIdentity, WarmObjects, WarmSource, WarmSourceError};
pub(crate) use store::{ClusterUid, Cold, FORMAT, Found, Header, WarmStore};
