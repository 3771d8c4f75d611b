//! The sources of a fleet's clusters.

mod directory;
mod secrets;
mod source;

pub use source::ClusterSource;
