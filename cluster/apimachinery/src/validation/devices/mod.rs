//! The kinds of the group `resource.k8s.io`: devices, and claims of them.

mod allocation;
mod attribute;
mod bindings;
mod capacity;
mod claim;
mod class;
mod config;
mod device;
mod lists;
mod names;
mod request;
mod selectors;
mod shapes;
mod slice;
mod status;
mod taints;
#[cfg(test)]
mod tests;

pub(super) use claim::{resource_claim, resource_claim_template};
pub(super) use class::device_class;
pub(super) use slice::resource_slice;
