//! Pods, and templates of them.

mod affinity;
mod annotations;
mod claims;
mod container;
mod create;
mod env;
mod handlers;
mod mounts;
mod network;
mod options;
mod pod_context;
mod quality;
mod ratchet;
mod resize;
mod scheduling;
mod security;
mod spec;
mod status;
mod system;
mod template;
mod update;
mod whole;

pub(super) use affinity::check_node_selector;
pub(super) use claims::check_fixed_overhead;
pub(super) use create::pod;
pub(super) use handlers::check_port;
pub use quality::quality_of_service;
pub(super) use scheduling::{TOLERATION, check_effect, check_tolerations};
pub(super) use template::{check_template, pod_template};
