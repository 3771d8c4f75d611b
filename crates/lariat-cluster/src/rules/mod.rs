//! Which requests which faults are for.

mod applies;
mod known;
mod rule;

pub(crate) use applies::Asked;
pub(crate) use known::{Fault, Isolated, Met, Rules};
pub use rule::{Rule, RuleId, RuleOptions};
