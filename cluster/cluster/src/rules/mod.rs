//! Fault rules: which requests a fault applies to.

mod added;
mod current;
mod request_info;
mod rule;
mod words;

pub(crate) use added::{AppliedFaults, Fault, Partition, Rules};
pub use current::CurrentRule;
pub(crate) use request_info::RequestInfo;
pub use rule::{Rule, RuleId, RuleOptions};
