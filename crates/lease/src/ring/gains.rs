//! The keys that a share gains.

use std::fmt;

use super::gate::Gate;
use super::share::Gained;

/// Follows the keys that the share of this process gains.
///
/// A follower is registered by a number of its own: followers of one kind, one after the other or at the same time,
/// know nothing of each other. Created by [`Shards::gains`](crate::Shards::gains).
///
/// ```no_run
/// use lariat::lease::{Gains, ShardKey};
///
/// # async fn example(gains: Gains, keys: Vec<ShardKey>) {
/// let gained = gains.next().await;
/// for key in keys.into_iter().filter(|key| gained.holds(*key)) {
///     println!("{key:?} is to be handled here from now on");
/// }
/// # }
/// ```
pub struct Gains {
    /// Has the share, and the state of this follower.
    gate: Gate,
    /// The number of this follower.
    number: u64,
}

impl Gains {
    /// Creates a follower that knows the present share.
    pub(super) fn new(gate: Gate) -> Self {
        let number = gate.add_follower();
        Self { gate, number }
    }

    /// Waits until the share has gained keys since the last call.
    ///
    /// The first call returns those gained since this follower was created.
    ///
    /// A key that has left the share and has come back counts as gained, also if both happened between two calls: its
    /// changes in the meantime were another member's.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&self) -> Gained {
        // Subscribed before the check, so that a change in between is not missed.
        let mut changes = self.gate.follow();
        loop {
            if let Some(gained) = self.gate.gained(self.number) {
                return gained;
            }
            // The gate owns the sender, so this cannot fail.
            let _ = changes.changed().await;
        }
    }
}

impl Drop for Gains {
    fn drop(&mut self) {
        self.gate.remove_follower(self.number);
    }
}

impl fmt::Debug for Gains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = &self.number;
        f.debug_struct("Gains")
            .field("number", number)
            .finish_non_exhaustive()
    }
}
