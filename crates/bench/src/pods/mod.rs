//! Pods as a cluster has them: alike where pods of a deployment are alike, and different elsewhere.
//!
//! What is random in real pods is random here (names, uids, addresses, hashes of containers, times), so
//! that they compress as real ones do. The same number always gives the same pod.

mod managed;
mod plan;
mod pods;
mod spec;
pub(crate) mod stamp;
mod status;

pub(crate) use managed::{CONTROLLER, KUBELET};
pub(crate) use plan::{NAMESPACES, namespace, node, team, words};
pub(crate) use pods::{SERVICE_ACCOUNT, index, pod};
