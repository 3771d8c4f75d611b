//! Lanes: the registered handlers of a kind, in the order of registration.

mod lane;
mod line;
mod list;
mod waiting;

pub(crate) use lane::Lane;
pub(crate) use list::{LaneList, Lanes};
pub(crate) use waiting::{Admission, Limit, Waiting, WaitingKey};
