//! Operators against the embedded cluster.

mod bench;

mod cached_api;
mod crds;
mod guard;
mod permissions;
mod planning;
mod reconciling;
