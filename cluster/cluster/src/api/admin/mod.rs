//! The admin endpoint: faults, journal, watches and snapshots over HTTP.
//!
//! It is ours and not of Kubernetes, so it lies under a prefix of its own, and it is there only if the
//! [builder](crate::ClusterBuilder::admin) says so.
//!
#![doc = include_str!("admin.md")]

mod dispatch;
mod faults;
mod journal;
mod request;
mod snapshots;

pub(crate) use dispatch::answer;
pub(crate) use request::AdminRequest;
