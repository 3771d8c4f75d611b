//! A cluster: how it is configured and started, and the handle on it.

mod builder;
mod handle;
mod inspector;

pub use builder::ClusterBuilder;
pub use handle::{Cluster, Commits};
pub use inspector::{Inspector, ResourceCount};
