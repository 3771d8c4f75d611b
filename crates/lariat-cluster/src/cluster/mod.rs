//! A cluster: how it is configured and started, and the handle on it.

mod builder;
mod handle;

pub use builder::ClusterBuilder;
pub use handle::{Cluster, Commits};
