//! Replicas of one program that elect a leader, or divide the keys among them.

mod plan;
mod program;
mod replicas;
mod suspensions;

pub(crate) use replicas::simulation;
