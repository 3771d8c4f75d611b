//! Lanes: the registered handlers of a kind, in the order of registration.
//!
//! A lane is a handler with its options, limits and counters. All lanes of a kind share its keys, and each fails,
//! backs off and becomes due separately. In reading order:
//!
//! 1. `lane` is one lane, and counts its running calls, so that a deregistration can wait for them.
//! 2. `list` is the list of a kind's lanes, which is replaced as a whole. It decides which lanes a change is for.
//! 3. `waiting` keeps keys for a lane outside the queue: while the lane is paused, while caches are synced, and while
//!    its concurrency limit is reached. `line` is the priority queue of such keys.
//! 4. `given_up` keeps the keys whose last call failed for good.

mod given_up;
mod lane;
mod line;
mod list;
mod waiting;

pub(crate) use given_up::GIVEN_UP;
pub(crate) use lane::{InFlight, Lane};
pub(crate) use list::{LaneList, Lanes};
pub(crate) use waiting::{Admission, Limit, Waiting, WaitingKey};
