//! The permissions that reconcilers and operators declare.

mod needs;
mod rule;

pub(crate) use needs::Needs;
pub use rule::Rule;
pub(crate) use rule::{Target, impersonation};
