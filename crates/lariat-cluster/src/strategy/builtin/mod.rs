//! Checks and defaults of single built-in kinds, as far as users meet them.
//!
//! Source: `k8s.io/kubernetes/pkg/apis/*/validation` and the strategies in `pkg/registry`.

pub(super) mod certificates;
pub(super) mod claims;
mod decide;
mod machinery;
mod parts;
pub(super) mod pods;
mod services;
pub(super) mod workloads;

pub(super) use decide::{prepare_create, prepare_update, validate};
