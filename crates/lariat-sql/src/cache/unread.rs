//! What an informer has said and is not written yet.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lariat_cache::{CachedObject, Change, Subscriber};
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// What happened to an object since it was written last: from which state to which.
///
/// [`lariat_cache::Changes`] would forget the state from which a deletion began, and with it whether a watch had shown the
/// object.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) key: ObjectKey,
    /// The state that was written last.
    pub(super) old: Option<Arc<CachedObject>>,
    pub(super) new: Option<Arc<CachedObject>>,
    /// Whether the object was there when the informer's cache was filled.
    pub(super) is_initial: bool,
}

impl Step {
    /// Returns whether another object has the name now.
    pub(super) fn is_successor(&self) -> bool {
        let states = self.old.as_ref().zip(self.new.as_ref());
        states.is_some_and(|(old, new)| old.uid() != new.uid())
    }
}

/// The steps of a kind, one for each object, by the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Unread {
    state: Mutex<State>,
    added: Notify,
}

#[derive(Debug, Default)]
struct State {
    order: BTreeMap<u64, ObjectKey>,
    steps: HashMap<ObjectKey, (u64, Step)>,
    next: u64,
}

impl Unread {
    /// Waits until there is a step.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub(super) async fn filled(&self) {
        while self.len() == 0 {
            self.added.notified().await;
        }
    }

    /// Takes so many steps at most.
    pub(super) fn take(&self, most: usize) -> Vec<Step> {
        let mut state = self.state.lock();
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some((_, key)) = state.order.pop_first()
        {
            taken.extend(state.steps.remove(&key).map(|(_, step)| step));
        }
        taken
    }

    /// Returns whether there is a step of this object.
    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.state.lock().steps.contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().order.len()
    }
}

impl Subscriber for Unread {
    fn changed(&self, changes: &[Change]) {
        let mut state = self.state.lock();
        for change in changes {
            state.put(change);
        }
        drop(state);
        self.added.notify_one();
    }
}

impl State {
    fn put(&mut self, change: &Change) {
        let (old, new, is_initial) = match change {
            Change::Added { object, initial } => (None, Some(object), *initial),
            Change::Updated { old, new } => (Some(old), Some(new), false),
            Change::Deleted { last } => (Some(last), None, false),
            // Nothing happened, or nothing that is known here.
            _ => return,
        };
        let key = change.key();
        if let Some((number, step)) = self.steps.get_mut(key) {
            step.new = new.cloned();
            if step.old.is_none() && step.new.is_none() {
                // It came and went.
                self.order.remove(number);
                self.steps.remove(key);
            }
            return;
        }
        let step = Step {
            key: key.clone(),
            old: old.cloned(),
            new: new.cloned(),
            is_initial,
        };
        self.order.insert(self.next, key.clone());
        self.steps.insert(key.clone(), (self.next, step));
        self.next += 1;
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
        let names = |steps: Vec<Step>| {
            steps
                .iter()
                .map(|step| step.key.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(unread.take(2)), ["a", "b"]);
        assert_eq!(unread.len(), 1);
        assert_eq!(names(unread.take(2)), ["c"]);
    }
}
