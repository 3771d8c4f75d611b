//! Unread changes: published by an informer, and not written yet.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{CachedObject, Change, Subscriber};
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The change of an object since it was last written: the states before and after.
///
/// [`lariat_cache::Changes`] would drop the state before a deletion, and with it whether a watch had reported the
/// object.
#[derive(Debug, Clone)]
pub(super) struct UnreadChange {
    pub(super) key: ObjectKey,
    /// The state that was written last.
    pub(super) old: Option<Arc<CachedObject>>,
    pub(super) new: Option<Arc<CachedObject>>,
    /// Whether the object is from the informer's initial list.
    pub(super) is_initial: bool,
    /// When the informer published the first change of the step.
    since: Instant,
}

impl UnreadChange {
    /// Returns whether another object has the name now.
    pub(super) fn is_successor(&self) -> bool {
        let states = self.old.as_ref().zip(self.new.as_ref());
        states.is_some_and(|(old, new)| old.uid() != new.uid())
    }
}

/// The steps of a kind, one per object, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Unread {
    state: Mutex<Backlog>,
    added: Notify,
}

#[derive(Debug, Default)]
struct Backlog {
    order: BTreeMap<u64, ObjectKey>,
    steps: HashMap<ObjectKey, (u64, UnreadChange)>,
    /// The number of steps that have begun.
    begun: u64,
    /// The number of steps taken but not written, and since when the first one waits.
    taken: Option<(usize, Instant)>,
}

impl Unread {
    /// Waits until there is a step.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub(super) async fn filled(&self) {
        while self.is_empty() {
            // A notification without a waiter is stored, so a step that is added before this line is not missed.
            self.added.notified().await;
        }
    }

    /// Takes up to `most` steps, to write them.
    ///
    /// They count as unwritten until [`written`](Self::written) is called.
    pub(super) fn take(&self, most: usize) -> Vec<UnreadChange> {
        let mut state = self.state.lock();
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some((_, key)) = state.order.pop_first()
        {
            // From here on a further change of the object begins a new step, from the state that is being written.
            taken.extend(state.steps.remove(&key).map(|(_, step)| step));
        }
        // Still counted: a status in between must not show the steps as written.
        state.taken = taken
            .first()
            .map(|first: &UnreadChange| (taken.len(), first.since));
        taken
    }

    /// Records that the steps that were taken last are written.
    pub(super) fn written(&self) {
        self.state.lock().taken = None;
    }

    /// Returns how many steps have begun; they are numbered from zero in that order.
    pub(super) fn begun(&self) -> u64 {
        self.state.lock().begun
    }

    /// Returns the number of the oldest step that is not taken.
    ///
    /// All steps before it were taken, or dropped because the object was created and deleted before it was written. If
    /// no step is left, it is the number of the next one.
    pub(super) fn first(&self) -> u64 {
        let state = self.state.lock();
        let first = state.order.first_key_value();
        first.map_or(state.begun, |(number, _)| *number)
    }

    /// Returns the number of steps that are not written, and the age of the oldest.
    pub(super) fn unwritten(&self) -> (usize, Duration) {
        let state = self.state.lock();
        let (taken, since) = state.taken.unzip();
        let waiting = || {
            let (_, key) = state.order.first_key_value()?;
            state.steps.get(key).map(|(_, step)| step.since)
        };
        // Steps that were taken began before those that were not.
        let age = since.or_else(waiting).map(|since| since.elapsed());
        let unwritten = taken.unwrap_or_default() + state.order.len();
        (unwritten, age.unwrap_or_default())
    }

    /// Adds a step for an object whose content was loaded without a change.
    ///
    /// An object that has a step already is left out: that step leads to a state at least as new.
    pub(super) fn filled_in(&self, old: Arc<CachedObject>, new: Arc<CachedObject>) {
        let mut state = self.state.lock();
        // A pending step has the content too, or a newer state.
        if !state.steps.contains_key(new.key()) {
            state.put(&Change::Updated { old, new }, Instant::now());
        }
    }

    /// Returns whether all steps are taken.
    pub(super) fn is_empty(&self) -> bool {
        self.state.lock().order.is_empty()
    }

    /// Returns whether there is a step of this object.
    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.state.lock().steps.contains_key(key)
    }
}

impl Subscriber for Unread {
    fn changed(&self, changes: &[Change]) {
        let now = Instant::now();
        let mut state = self.state.lock();
        for change in changes {
            state.put(change, now);
        }
        drop(state);
        // After unlocking: the feed takes the lock as soon as it is woken.
        self.added.notify_one();
    }
}

impl Backlog {
    fn put(&mut self, change: &Change, now: Instant) {
        let (old, new, is_initial) = match change {
            Change::Added { object, initial } => (None, Some(object), *initial),
            Change::Updated { old, new } => (Some(old), Some(new), false),
            Change::Deleted { last } => (Some(last), None, false),
            // A resync, or a change that this version does not know.
            _ => return,
        };
        let key = change.key();
        if let Some((number, step)) = self.steps.get_mut(key) {
            // The state before stays the one that was written, so a watch sees one change from there.
            step.new = new.cloned();
            if step.old.is_none() && step.new.is_none() {
                // The object was created and deleted before it was written.
                self.order.remove(number);
                self.steps.remove(key);
            }
            return;
        }
        let step = UnreadChange {
            key: key.clone(),
            old: old.cloned(),
            new: new.cloned(),
            is_initial,
            since: now,
        };
        // The order is that of first changes, so an object that changes all the time does not hold back others.
        self.order.insert(self.begun, key.clone());
        self.steps.insert(key.clone(), (self.begun, step));
        self.begun += 1;
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::{Gvk, RawObject};

    use super::*;

    fn state(name: &str, version: u64) -> Arc<CachedObject> {
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}"#
        );
        let raw = RawObject::parse(json.as_bytes(), &Gvk::new("", "v1", "Thing"));
        Arc::new(CachedObject::new(raw.unwrap()))
    }

    fn taken(changes: &[Change]) -> Vec<(String, String, String)> {
        let unread = Unread::default();
        unread.changed(changes);
        let shown = |state: Option<Arc<CachedObject>>| {
            state.map_or("-".to_owned(), |it| it.version().to_string())
        };
        let steps = unread.take(usize::MAX).into_iter();
        steps
            .map(|step| (step.key.to_string(), shown(step.old), shown(step.new)))
            .collect()
    }

    fn added(object: Arc<CachedObject>) -> Change {
        let initial = false;
        Change::Added { object, initial }
    }

    #[test]
    fn steps_lead_from_what_was_written_to_what_is_known() {
        let (one, two, three) = (state("a", 1), state("a", 2), state("a", 3));
        let updated = |old: &Arc<_>, new: &Arc<_>| Change::Updated {
            old: Arc::clone(old),
            new: Arc::clone(new),
        };
        let deleted = |last: &Arc<_>| Change::Deleted {
            last: Arc::clone(last),
        };
        let is = |old: &str, new: &str| vec![("a".to_owned(), old.to_owned(), new.to_owned())];
        assert_eq!(
            taken(&[updated(&one, &two), updated(&two, &three)]),
            is("1", "3")
        );
        assert_eq!(taken(&[updated(&one, &two), deleted(&two)]), is("1", "-"));
        assert_eq!(taken(&[deleted(&one), added(two.clone())]), is("1", "2"));
        assert_eq!(
            taken(&[added(one.clone()), updated(&one, &two)]),
            is("-", "2")
        );
        assert_eq!(taken(&[added(one.clone()), deleted(&one)]), []);
        assert_eq!(
            taken(&[deleted(&one), added(two.clone()), deleted(&two)]),
            is("1", "-")
        );
    }

    #[test]
    fn steps_are_taken_in_the_order_in_which_they_began() {
        let unread = Unread::default();
        let (a, b, c) = (state("a", 1), state("b", 2), state("c", 3));
        unread.changed(&[added(a.clone()), added(b), added(c)]);
        let old = a;
        let new = state("a", 4);
        unread.changed(&[Change::Updated { old, new }]);
        let names = |steps: Vec<UnreadChange>| {
            steps
                .iter()
                .map(|step| step.key.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(unread.take(2)), ["a", "b"]);
        assert_eq!(unread.first(), 2);
        assert_eq!(names(unread.take(2)), ["c"]);
    }

    #[tokio::test(start_paused = true)]
    async fn steps_are_unwritten_and_age_until_they_are_written() {
        let unread = Unread::default();
        let (a, b) = (state("a", 1), state("b", 2));
        let second = Duration::from_secs(1);
        assert_eq!(unread.unwritten(), (0, Duration::ZERO));
        unread.changed(&[added(a)]);
        tokio::time::advance(second).await;
        unread.changed(&[added(b.clone())]);
        assert_eq!(unread.unwritten(), (2, second));
        assert_eq!(unread.take(1).len(), 1);
        tokio::time::advance(second).await;
        assert_eq!(unread.unwritten(), (2, 2 * second));
        unread.written();
        assert_eq!(unread.unwritten(), (1, second));
        // A later change does not make it younger.
        let new = state("b", 3);
        unread.changed(&[Change::Updated { old: b, new }]);
        tokio::time::advance(second).await;
        assert_eq!(unread.unwritten(), (1, 2 * second));
        unread.take(1);
        unread.written();
        assert_eq!(unread.unwritten(), (0, Duration::ZERO));
    }

    #[test]
    fn content_that_comes_does_not_replace_a_later_state() {
        let unread = Unread::default();
        let (old, new) = (state("a", 1), state("a", 2));
        unread.changed(&[Change::Updated {
            old: old.clone(),
            new: new.clone(),
        }]);
        unread.filled_in(old.clone(), old.clone());
        let steps = unread.take(2);
        assert_eq!(steps.len(), 1);
        assert_eq!(
            steps[0].new.as_ref().map(|it| it.version()),
            Some(new.version())
        );
        unread.filled_in(old.clone(), old);
        assert_eq!(unread.take(2).len(), 1);
    }
}
