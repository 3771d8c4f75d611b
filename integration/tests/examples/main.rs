//! The examples as processes: what they print, and that they end well.

mod autoscaler;
mod concurrency;
mod custom_config;
mod dynamic_audit;
mod kronjob;
mod metrics;
mod multi_resource;
mod pod_logger;
mod pod_terminator;
mod quickstart;
mod related_kinds;
mod sample_controller;
mod slow;
#[cfg(unix)]
mod suggestions;
mod useless_machine;
