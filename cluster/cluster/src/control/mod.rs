//! The controllers of the control plane that run inside the cluster.
//!
//! One task runs them all. It takes every commit from the store, in order, and shows it to each
//! controller, which enqueues what it has to look at; then each does some of its work. So the cost of
//! a commit depends on the objects it concerns, not on the size of the store. Nothing runs while nothing
//! happens: a timer is set only while something is due.

mod aggregation;
mod api_services;
mod compaction;
mod controller;
mod crds;
mod defaults;
mod definitions;
mod expiry;
mod flow_schemas;
mod garbage;
mod graph;
mod handle;
mod metadata;
mod names;
mod namespaces;
mod protection;
mod queue;
mod quotas;
mod run;
mod shrink;
#[cfg_attr(not(feature = "workloads"), path = "workloads_off.rs")]
mod workloads;
mod write;

pub use handle::Control;
pub(crate) use run::run;
#[cfg(feature = "workloads")]
pub use workloads::SimulatedWorkloads;
