//! Strategies of single built-in kinds.
//!
//! Source: the strategies in `k8s.io/kubernetes/pkg/registry`.

pub(super) mod certificates;
pub(super) mod claims;
mod decide;
pub(super) mod default_classes;
pub(super) mod devices;
mod machinery;
mod parts;
pub(super) mod pods;
pub(super) mod profiles;
pub(super) mod runtime_classes;
mod services;
pub(super) mod volumes;
pub(super) mod workloads;

pub(super) use decide::{prepare_create, prepare_update};
