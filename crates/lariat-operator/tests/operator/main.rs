//! Operators against the embedded cluster.

mod bench;

mod crds;
mod permissions;
mod reconciling;
