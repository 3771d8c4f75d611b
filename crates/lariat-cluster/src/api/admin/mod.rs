//! The admin endpoint: faults, journal, watches and snapshots over HTTP.
//!
//! It is ours and not of Kubernetes, so it lies under a prefix of its own, and it is there only if the
//! [builder](crate::ClusterBuilder::admin) says so.
//!
#![doc = include_str!("admin.md")]

mod asked;
mod dispatch;
mod faults;
mod journal;
mod snapshots;

pub(crate) use asked::Asked;
pub(crate) use dispatch::answer;
