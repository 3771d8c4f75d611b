//! Operators against the embedded cluster.

mod bench;

mod events_bench;
mod events_faults;
mod events_written;
mod reconciling;
