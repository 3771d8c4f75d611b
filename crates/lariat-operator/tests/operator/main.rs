//! Operators against the embedded cluster.

mod bench;

mod program;

mod crd_faults;
mod crds;
mod permissions;
mod reconciling;
