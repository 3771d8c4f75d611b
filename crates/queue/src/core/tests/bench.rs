//! A queue whose clock is moved by hand.

use std::time::{Duration, Instant};

use crate::*;
/// A queue of numbered lanes over letters, with a clock that is moved by hand.
pub(super) struct Bench {
    pub(super) queue: QueueCore<char, Vec<u32>>,
    pub(super) now: Instant,
}

impl Payload for Vec<u32> {
    fn merge(&mut self, later: Self) {
        self.extend(later);
    }
}

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn lane(number: u32) -> LaneId {
    LaneId::new(number)
}

pub(super) fn now_add() -> Add<Vec<u32>> {
    Add::now()
}

impl Bench {
    #[allow(
        clippy::disallowed_methods,
        reason = "an arbitrary origin of virtual time"
    )]
    pub(super) fn new() -> Self {
        Self {
            queue: QueueCore::new(Ageing::new(10 * SECOND, 4)),
            now: Instant::now(),
        }
    }

    pub(super) fn add(&mut self, keys: &str) {
        for key in keys.chars() {
            self.queue.add(key, now_add(), self.now);
        }
    }

    pub(super) fn add_with(&mut self, key: char, add: Add<Vec<u32>>) {
        self.queue.add(key, add, self.now);
    }

    pub(super) fn advance(&mut self, by: Duration) {
        self.now += by;
    }

    pub(super) fn get(&mut self) -> Option<Item<char, Vec<u32>>> {
        self.queue.get(self.now)
    }

    pub(super) fn done_with(
        &mut self,
        item: &Item<char, Vec<u32>>,
        verdicts: &[(LaneId, Verdict<Vec<u32>>)],
    ) {
        self.queue
            .done(item.slot, item.priority, verdicts.iter().cloned(), self.now);
    }

    pub(super) fn done(&mut self, item: &Item<char, Vec<u32>>) {
        self.done_with(item, &[(LaneId::WHOLE, Verdict::Done)]);
    }

    /// Gets and finishes everything that is ready.
    pub(super) fn drain(&mut self) -> String {
        let mut keys = String::new();
        while let Some(item) = self.get() {
            keys.push(item.key);
            self.done(&item);
        }
        keys
    }
}
