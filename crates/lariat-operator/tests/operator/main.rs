//! Operators against the embedded cluster.

mod apply_rig;
mod apply_sets;
mod bench;

mod reconciling;
