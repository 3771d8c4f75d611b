//! The world outside of the processes: the cluster, its foreign clients, and their faults.

mod actions;
mod foreign;
mod world;

pub use foreign::LABEL;
pub(crate) use world::World;
