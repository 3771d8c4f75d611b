//! What reconcilers and operators say they need to be allowed.

mod needs;
mod rule;

pub(crate) use needs::Needs;
pub use rule::Rule;
pub(crate) use rule::{Target, impersonation};
