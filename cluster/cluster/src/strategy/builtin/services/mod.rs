//! Allocates cluster addresses and node ports for Services.
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
