//! Replicas of one program that elect a leader, or divide the keys among them.

mod plan;
mod program;
mod replicas;

pub(crate) use replicas::simulation;
