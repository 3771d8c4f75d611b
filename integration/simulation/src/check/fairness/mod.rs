//! The order of calls: priorities of fresh changes, without starvation.

mod overtaking;

pub(super) use overtaking::Overtaking;
