//! The permissions that operators and reconcilers declare as [`Rule`]s.

mod needs;
mod rule;

pub(crate) use needs::Needs;
pub use rule::Rule;
pub(crate) use rule::{Target, impersonation};
