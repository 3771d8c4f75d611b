//! Which requests which faults are for.

mod added;
mod request_info;
mod rule;

pub(crate) use added::{AppliedFaults, Fault, Isolated, Rules};
pub(crate) use request_info::RequestInfo;
pub use rule::{Rule, RuleId, RuleOptions};
