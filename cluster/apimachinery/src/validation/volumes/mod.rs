//! Volume sources: in Pods, and of PersistentVolumes.

mod downward;
mod local;
mod network;
mod options;
mod projected;
mod sources;

pub(super) use downward::{check_field_reference, check_resource_reference};
pub(super) use network::{check_driver, check_driver_name, check_initiator};
pub(super) use options::Options;
pub(super) use sources::{check_persistent, check_pod, count, persistent_members};
