//! Where the clusters of a fleet come from.

mod directory;
mod secrets;
mod source;

pub use source::ClusterSource;
