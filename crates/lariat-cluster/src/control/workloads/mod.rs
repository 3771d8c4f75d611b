//! Simulated nodes and workloads: a scheduler, kubelets, and the controllers of workloads.
//!
//! Each object is looked at when it or something it owns changed, or when its time has come. A look
//! reads the store itself, does at most what is to be done now, and says when it wants to be made again.

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
mod job;
mod kind;
mod kubelet;
mod look;
mod nodes;
mod pod_status;
mod replica_set;
mod rollout;
mod scheduler;
mod selectors;
mod slices;
mod stateful_set;
mod template;

pub(super) use controller::Simulation;
