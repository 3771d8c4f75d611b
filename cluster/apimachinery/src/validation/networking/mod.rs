//! The kinds of the group `networking.k8s.io`.

mod addresses;
mod backend;
mod class;
mod ingress;
mod policy;

pub(super) use addresses::{ip_address, service_cidr};
pub(super) use class::ingress_class;
pub(super) use ingress::ingress;
pub(super) use policy::network_policy;
