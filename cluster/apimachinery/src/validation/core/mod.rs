//! The kinds of the core group.

mod cluster;
mod config;
mod controller;
mod endpoints;
mod events;
mod limits;
mod node;
mod node_annotations;
mod quota;
mod service;
mod service_addresses;
mod service_kind;
mod service_update;
mod volume;
mod volume_claim;

pub(super) use cluster::{binding, namespace};
pub(super) use config::{config_map, secret};
pub(super) use controller::replication_controller;
pub(super) use endpoints::endpoints;
pub(super) use events::{core_event, event};
pub(super) use limits::limit_range;
pub(super) use node::node;
pub(super) use quota::resource_quota;
pub(super) use service::service;
pub(super) use service_addresses::check as check_addresses;
pub(super) use volume::{check_inline_volume, persistent_volume};
pub(super) use volume_claim::persistent_volume_claim;
