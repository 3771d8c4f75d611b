//! The operators, and what they share: a cluster to run on, and readable output.
//!
//! Each folder is one operator: `mod.rs` is the operator, as it could run on your own cluster, `main.rs` plays a story
//! with it, `tests.rs` tests it.

pub mod concurrency;
pub mod custom_config;
pub mod multi_resource;
pub mod pod_logger;
pub mod pod_terminator;

pub mod autoscaler;
pub mod cpu_autoscaler;
pub mod failover;
pub mod kronjob;
pub mod sharded;

pub mod dynamic_audit;
pub mod related_kinds;
pub mod sample_controller;
pub mod simulated;
pub mod useless_machine;
pub mod website;

mod support;

pub use support::*;
