//! The order of calls: fresh changes overtake what can wait, and what can wait is not starved.

mod overtaking;

pub(super) use overtaking::Overtaking;
