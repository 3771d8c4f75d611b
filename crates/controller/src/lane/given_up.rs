//! The keys that a handler has given up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_core::{ObjectKey, Uid};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The maximum number of keys of a handler that are kept, the newest ones.
pub(crate) const GIVEN_UP: usize = 4096;

/// The keys whose last call failed, and after which no call is scheduled.
///
/// The queue has forgotten them, so they are kept here. Only calls add and remove keys. Objects are deleted, recreated
/// and moved to other members of a ring without a call, so a reader asks the cache and the ring about each key
/// ([`sweep`](Self::sweep)), and no exit of a key from the controller has to be recorded.
#[derive(Default)]
pub(crate) struct GivenUp {
    /// Whether `keys` is not empty. While it is empty, a call that succeeds takes no lock.
    are_any: AtomicBool,
    keys: Mutex<HashMap<ObjectKey, Last>>,
}

/// The last call for a key that was given up.
struct Last {
    /// The object that the call was for.
    uid: Uid,
    ended: Instant,
}

impl GivenUp {
    /// Records how a call ended: with the object that is given up, or `None` if another call follows or none is needed.
    pub(crate) fn note(&self, key: &ObjectKey, given_up: Option<Uid>) {
        let Some(uid) = given_up else {
            return self.remove(key);
        };
        let ended = Instant::now();
        let mut keys = self.keys.lock();
        if keys.len() >= GIVEN_UP && !keys.contains_key(key) {
            let oldest = keys.iter().min_by_key(|(_, last)| last.ended);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|oldest| keys.remove(&oldest));
        }
        keys.insert(key.clone(), Last { uid, ended });
        self.are_any.store(true, Ordering::Relaxed);
    }

    fn remove(&self, key: &ObjectKey) {
        // Relaxed is enough: the worker that gave this key up has returned it to the queue, whose lock makes the flag
        // visible to the worker that has the key now.
        if !self.are_any.load(Ordering::Relaxed) {
            return;
        }
        let mut keys = self.keys.lock();
        keys.remove(key);
        self.are_any.store(!keys.is_empty(), Ordering::Relaxed);
    }

    /// Removes the keys that do not count any more, and returns the others with the ends of their last calls.
    pub(crate) fn sweep(
        &self,
        counts: impl Fn(&ObjectKey, &Uid) -> bool,
    ) -> Vec<(ObjectKey, Instant)> {
        if !self.are_any.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut keys = self.keys.lock();
        keys.retain(|key, last| counts(key, &last.uid));
        self.are_any.store(!keys.is_empty(), Ordering::Relaxed);
        let kept = keys.iter();
        kept.map(|(key, last)| (key.clone(), last.ended)).collect()
    }

    /// Returns how many keys are kept.
    pub(crate) fn len(&self) -> usize {
        if !self.are_any.load(Ordering::Relaxed) {
            return 0;
        }
        self.keys.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time;

    use super::*;

    fn key(number: usize) -> ObjectKey {
        ObjectKey::cluster(&number.to_string())
    }

    fn uid() -> Option<Uid> {
        Some(Uid::new("a"))
    }

    #[tokio::test(start_paused = true)]
    async fn given_up_keys_are_bounded_and_the_newest_stay() {
        let given_up = GivenUp::default();
        for number in 0..GIVEN_UP + 2 {
            given_up.note(&key(number), uid());
            time::advance(Duration::from_millis(1)).await;
        }
        let kept = given_up.sweep(|_, _| true);
        assert_eq!((kept.len(), given_up.len()), (GIVEN_UP, GIVEN_UP));
        assert!(
            kept.iter()
                .all(|(kept, _)| *kept != key(0) && *kept != key(1))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn given_up_key_ends_with_the_next_call_or_its_object() {
        let given_up = GivenUp::default();
        (0..3).for_each(|number| given_up.note(&key(number), uid()));
        given_up.note(&key(0), None);
        let kept = given_up.sweep(|each, of| *each == key(1) && *of == Uid::new("a"));
        assert_eq!((kept.len(), kept[0].0.clone()), (1, key(1)));
        given_up.note(&key(1), None);
        assert!(given_up.sweep(|_, _| true).is_empty() && given_up.len() == 0);
    }
}
