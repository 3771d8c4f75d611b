//! What a kind publishes: changes to subscribers, and progress to readers of its status.

mod budget;
mod progress;
mod publisher;
mod status;
mod updates;
mod user;

pub(crate) use budget::{Budget, Share, SharedBudget};
pub(crate) use progress::{Progress, Segment, Trouble};
pub(crate) use publisher::{Meaning, Publisher};
pub use publisher::{Subscriber, Subscription, Written};
pub use status::{KindStatus, Phase, Reconnect};
pub(crate) use updates::LastUpdates;
pub(crate) use user::{Usage, User};
