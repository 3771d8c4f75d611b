//! Operators against the embedded cluster.

mod bench;

mod reconciling;
