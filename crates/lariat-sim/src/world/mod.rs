//! The world beside the processes: the cluster, its foreign clients, and what goes wrong with both.

mod actions;
mod foreign;
mod world;

pub(crate) use foreign::LABEL;
pub(crate) use world::World;
