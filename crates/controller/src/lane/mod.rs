//! Lanes: the registered handlers of a kind, in the order of registration.
//!
//! A lane is a handler with its options, limits and counters. All lanes of a kind share its keys, and each fails,
//! backs off and becomes due separately. In reading order:
//!
//! 1. `lane` is one lane, and counts its running calls, so that a deregistration can wait for them.
//! 2. `list` is the list of a kind's lanes, which is replaced as a whole. It decides which lanes a change is for.
//! 3. `awaited` has the related caches that a lane waits for. The keys wait in the queue, as they do while the lane is
//!    paused or at its concurrency limit.
//! 4. `given_up` keeps the keys whose last call failed for good.

mod awaited;
mod given_up;
mod lane;
mod list;

pub(crate) use given_up::GIVEN_UP;
pub(crate) use lane::{InFlight, Lane};
pub(crate) use list::{LaneList, Lanes};
