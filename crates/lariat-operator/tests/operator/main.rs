//! Operators against the embedded cluster.

mod bench;

mod cached_api;
mod guard;
mod planning;
mod reconciling;
