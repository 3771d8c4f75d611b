//! Simulated nodes and workloads: a scheduler, kubelets, and the controllers of workloads.
//!
//! An object is reconciled when it or something it owns has changed, or when it is due. A reconcile reads
//! the store, writes what is to be written now, and returns when the object is to be reconciled again.

mod adoption;
mod child;
mod claims;
mod conditions;
mod controller;
mod cron;
mod cron_job;
mod daemon_set;
mod deployment;
mod endpoints;
mod events;
mod handle;
mod job;
mod kind;
mod kubelet;
mod nodes;
mod pod_status;
mod reconcile;
mod refusal;
mod replica_set;
mod rollout;
mod scheduler;
mod selectors;
mod slices;
mod stateful_set;
mod template;
mod write;

pub(super) use controller::controller;
pub use handle::SimulatedWorkloads;
