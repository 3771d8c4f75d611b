//! Operators against the embedded cluster.

mod bench;

mod cached_api;
mod reconciling;
