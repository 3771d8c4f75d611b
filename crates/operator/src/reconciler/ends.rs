//! Remembers for which deletions `on_deleted` was called.
//!
//! A call may be repeated for reasons of its own, but the function is to be called once per deleted object.

use std::collections::{BTreeMap, HashMap};

use lariat_core::{TableSize, Uid};
use parking_lot::Mutex;

/// The bound of each set.
///
/// A deletion whose calls have exhausted their retries is removed by nothing else.
const MOST: usize = 1024;

/// The deletions for which a reconciler's function was called.
#[derive(Debug, Default)]
pub(super) struct Ends(Mutex<EndSets>);

#[derive(Debug, Default)]
struct EndSets {
    /// Deletions for which a call has begun and none has succeeded.
    begun: Latest,
    /// Deletions for which the call has succeeded.
    ///
    /// The handler is retried for another reason. They have a set of their own, so that failing ones do not evict them:
    /// an evicted one would be reported twice.
    notified: Latest,
}

impl Ends {
    pub(super) fn is_notified(&self, uid: &Uid) -> bool {
        self.0.lock().notified.contains(uid)
    }

    /// Returns whether an earlier call began and failed, panicked or was dropped.
    pub(super) fn is_begun(&self, uid: &Uid) -> bool {
        self.0.lock().begun.contains(uid)
    }

    pub(super) fn begin(&self, uid: &Uid) {
        self.0.lock().begun.insert(uid);
    }

    pub(super) fn notified(&self, uid: &Uid) {
        let mut state = self.0.lock();
        // Both under one lock, so that no call finds the deletion in neither set.
        state.begun.remove(uid);
        state.notified.insert(uid);
    }

    /// Returns the number of remembered deletions, and its bound.
    pub(super) fn table_sizes(&self) -> TableSize {
        let state = self.0.lock();
        let ends = state.begun.order.len() + state.notified.order.len();
        TableSize::new("ends", ends, 2 * MOST)
    }

    pub(super) fn forget(&self, uid: &Uid) {
        let mut state = self.0.lock();
        state.begun.remove(uid);
        state.notified.remove(uid);
    }
}

/// The uids that were inserted last, at most [`MOST`].
#[derive(Debug, Default)]
struct Latest {
    numbers: HashMap<Uid, u64>,
    order: BTreeMap<u64, Uid>,
    next: u64,
}

impl Latest {
    fn contains(&self, uid: &Uid) -> bool {
        self.numbers.contains_key(uid)
    }

    fn insert(&mut self, uid: &Uid) {
        // A uid that is inserted again becomes the newest.
        self.remove(uid);
        self.numbers.insert(uid.clone(), self.next);
        self.order.insert(self.next, uid.clone());
        self.next += 1;
        if self.order.len() > MOST
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.numbers.remove(&oldest);
        }
    }

    fn remove(&mut self, uid: &Uid) {
        if let Some(number) = self.numbers.remove(uid) {
            self.order.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(number: usize) -> Uid {
        Uid::new(&number.to_string())
    }

    #[test]
    fn ends_are_begun_and_notified_and_forgotten() {
        let (ends, uid) = (Ends::default(), Uid::new("a"));
        assert!(!ends.is_begun(&uid) && !ends.is_notified(&uid));
        ends.begin(&uid);
        assert!(ends.is_begun(&uid) && !ends.is_notified(&uid));
        ends.notified(&uid);
        assert!(!ends.is_begun(&uid) && ends.is_notified(&uid));
        ends.forget(&uid);
        assert!(!ends.is_notified(&uid));
    }

    #[test]
    fn of_ends_that_are_never_forgotten_the_latest_are_kept() {
        let ends = Ends::default();
        ends.begin(&Uid::new("a"));
        ends.notified(&Uid::new("a"));
        for number in 0..2 * MOST {
            ends.begin(&uid(number));
        }
        assert!(ends.is_notified(&Uid::new("a")), "the others are apart");
        assert!(!ends.is_begun(&uid(MOST - 1)));
        assert!(ends.is_begun(&uid(MOST)) && ends.is_begun(&uid(2 * MOST - 1)));
        for number in 0..2 * MOST {
            ends.notified(&uid(number));
        }
        let state = ends.0.lock();
        assert_eq!((state.begun.numbers.len(), state.begun.order.len()), (0, 0));
        let notified = &state.notified;
        assert_eq!((notified.numbers.len(), notified.order.len()), (MOST, MOST));
        assert!(notified.contains(&uid(2 * MOST - 1)) && !notified.contains(&uid(0)));
    }
}
