//! What the API server checks and fills in for single built-in kinds, as far as users meet it.
//!
//! Source: `k8s.io/kubernetes/pkg/apis/*/validation` and the strategies in `pkg/registry`.

mod data;
mod decide;
mod fixed;
mod leases;
mod parts;
mod pods;
mod services;
mod workloads;

pub(super) use decide::{prepare_create, prepare_update, validate};
