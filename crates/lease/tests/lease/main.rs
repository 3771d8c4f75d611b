//! Leases on the embedded cluster.

mod bench;
mod election;
mod fence;
mod ring;
mod ring_bench;
