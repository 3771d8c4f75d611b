//! Handlers of many kinds, which are registered as kinds appear.
//!
//! `all_kinds` has the public handles. `follower` runs discovery, and registers and deregisters the handler.

mod all_kinds;
mod follower;

pub use all_kinds::{AllKinds, KindsRegistration};
pub(crate) use follower::{Follower, Follows};
