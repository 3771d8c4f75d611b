//! The kinds of the group `storage.k8s.io`.

mod attachment;
mod capacity;
mod class;
mod driver;
mod node;

pub(super) use attachment::volume_attachment;
pub(super) use capacity::storage_capacity;
pub(super) use class::{storage_class, volume_attributes_class};
pub(super) use driver::csi_driver;
pub(super) use node::csi_node;
