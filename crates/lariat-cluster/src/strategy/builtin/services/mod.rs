//! What Services are given: addresses inside the cluster, and ports of the nodes.
//!
//! Source: `k8s.io/kubernetes/pkg/registry/core/service/storage`.

mod addresses;
mod allocation;
mod families;
mod patch;
mod ports;
mod prepare;
mod spec;

pub(super) use prepare::{prepare_create, prepare_update};
