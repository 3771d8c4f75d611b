//! Operators against the embedded cluster.

mod bench;

mod cached_api;
mod crds;
mod permissions;
mod reconciling;
