//! The output of a kind: changes to subscribers, and progress to readers of its status.
//!
//! `publisher` is the only writer of the store: it applies a change and publishes it to all subscribers under one lock,
//! so that all of them receive all changes in the same order. `budget` reduces the memory of a kind, `updates`
//! remembers recent changes, `progress` collects what the reflectors report, each for its `segment`, in `totals` for
//! `status`, `user` counts uses.

mod budget;
mod progress;
mod publisher;
mod segment;
mod status;
mod totals;
mod updates;
mod user;

pub use budget::ContentHold;
pub(crate) use budget::{Budget, SharedBudget};
pub(crate) use progress::{Filling, Progress, Trouble};
pub(crate) use publisher::{Meaning, Publisher};
pub use publisher::{OwnWrite, Subscriber, Subscription};
pub(crate) use segment::Segment;
pub use status::{Blind, KindStatus, Phase, Reconnect};
pub(crate) use updates::LastUpdates;
pub(crate) use user::{Usage, User};
