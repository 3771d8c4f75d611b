//! Handlers of many kinds.

mod all_kinds;
mod follower;

pub use all_kinds::{AllKinds, KindsRegistration};
pub(crate) use follower::{Follower, Follows};
