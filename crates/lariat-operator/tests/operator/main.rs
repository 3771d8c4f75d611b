//! Operators against the embedded cluster.

mod apply_claims;
mod apply_faults;
mod apply_rig;
mod apply_sets;
mod bench;

mod reconciling;
