//! A stream of changes, for readers of any speed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::Stream;
use lariat_core::ObjectKey;
use parking_lot::Mutex;

use crate::publish::{Subscriber, Subscription};
use crate::store::Change;

/// A stream of the changes of a kind, for a reader of any speed.
///
/// The stream begins with the objects that existed at the time of subscribing. The cache does not wait for the reader:
/// unread changes are merged per object, so there is at most one for each object (two for an object that was deleted
/// and created again). An object that was created and deleted before it was read is left out. Nothing else is left out,
/// and the reader gets the last state of every object. The order between objects is that of their first unread change.
///
/// Dropping the stream ends the subscription; it does not end by itself.
///
/// ```no_run
/// use lariat::cache::{Change, Informer};
///
/// # async fn example(pods: Informer) {
/// let mut changes = pods.changes();
/// loop {
///     if let Change::Deleted { last } = changes.next().await {
///         println!("{} was deleted", last.key());
///     }
/// }
/// # }
/// ```
#[must_use = "dropping a stream of changes ends it"]
pub struct Changes {
    unread: Arc<Unread>,
    _subscription: Subscription,
}

/// The unread changes, shared by the stream and its subscription.
#[derive(Default)]
pub(crate) struct Unread {
    state: Mutex<PendingChanges>,
}

#[derive(Default)]
struct PendingChanges {
    /// Keys with unread changes, once each, by the number of the first unread change.
    order: BTreeMap<u64, ObjectKey>,
    by_key: HashMap<ObjectKey, Pending>,
    /// The number of the next key in `order`.
    next: u64,
    reader: Option<Waker>,
}

/// The unread changes of an object; changes that cancel each other out are removed.
#[derive(Default)]
struct Pending {
    number: u64,
    /// The deletion of the previous object of the key, if `last` adds another one.
    first: Option<Change>,
    last: Option<Change>,
}

impl Changes {
    pub(crate) fn new(unread: Arc<Unread>, subscription: Subscription) -> Self {
        Self {
            unread,
            _subscription: subscription,
        }
    }

    /// Waits for the next change.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses no change.
    pub async fn next(&mut self) -> Change {
        std::future::poll_fn(|cx| self.poll_change(cx)).await
    }

    /// Returns the next change if there is one, without waiting.
    pub fn try_next(&mut self) -> Option<Change> {
        self.unread.state.lock().take()
    }

    /// Returns the number of objects with unread changes.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.unread.state.lock().order.len()
    }

    /// Returns all unread changes, in order, without waiting.
    ///
    /// Right after subscribing these are the existing objects, each as [`Change::Added`]: whatever has happened to them
    /// since is merged into that, and objects that are deleted by now are left out.
    #[must_use]
    pub fn take_all(&mut self) -> Vec<Change> {
        self.unread.take_all()
    }

    fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<Change> {
        let mut state = self.unread.state.lock();
        match state.take() {
            Some(change) => Poll::Ready(change),
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Stream for Changes {
    type Item = Change;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        self.poll_change(cx).map(Some)
    }
}

impl Unread {
    fn take_all(&self) -> Vec<Change> {
        // Under one lock. Between two locks, a change of an object that was taken already would be put at the end.
        let mut state = self.state.lock();
        std::iter::from_fn(|| state.take()).collect()
    }
}

impl Subscriber for Unread {
    fn changed(&self, changes: &[Change]) {
        let mut state = self.state.lock();
        for change in changes {
            state.put(change.clone());
        }
        let reader = state.reader.take();
        drop(state);
        // After unlocking: the reader takes the lock as soon as it is woken.
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl PendingChanges {
    fn put(&mut self, change: Change) {
        let key = change.key().clone();
        let pending = self.by_key.entry(key.clone()).or_insert_with(|| {
            let number = self.next;
            self.next += 1;
            self.order.insert(number, key.clone());
            Pending {
                number,
                ..Pending::default()
            }
        });
        pending.put(change);
        if pending.is_empty() {
            self.order.remove(&pending.number);
            self.by_key.remove(&key);
        }
    }

    fn take(&mut self) -> Option<Change> {
        // A deletion comes before the addition of the next object of the key.
        let entry = self.order.first_entry()?;
        let pending = self.by_key.get_mut(entry.get())?;
        let next = pending.first.take().or_else(|| pending.last.take());
        if pending.is_empty() {
            self.by_key.remove(&entry.remove());
        }
        next
    }
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.first.is_none() && self.last.is_none()
    }

    /// Merges a change into the unread one.
    fn put(&mut self, change: Change) {
        self.last = match (self.last.take(), change) {
            (None, change) => Some(change),
            // A resync only repeats the state, which the unread change has already.
            (Some(unread), Change::Resynced { .. }) => Some(unread),
            (Some(Change::Added { initial, .. }), Change::Updated { new, .. }) => {
                let object = new;
                Some(Change::Added { object, initial })
            }
            (Some(Change::Updated { old, .. }), Change::Updated { new, .. }) => {
                Some(Change::Updated { old, new })
            }
            // Created and deleted unread: nothing remains but a deletion of the object before it.
            (Some(Change::Added { .. }), Change::Deleted { .. }) => self.first.take(),
            (Some(deleted @ Change::Deleted { .. }), added @ Change::Added { .. }) => {
                self.first = Some(deleted);
                Some(added)
            }
            // An unread `Resynced` is replaced, and so is an update by a deletion.
            (Some(_), change) => Some(change),
        };
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unread = self.unread.state.lock().order.len();
        f.debug_struct("Changes")
            .field("unread", &unread)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use lariat_core::{Gvk, RawObject};

    use super::*;
    use crate::store::{Content, Delta, Store};

    const OBJECTS: usize = 500;

    fn object(number: usize, version: usize) -> RawObject {
        let gvk = Gvk::new("", "v1", "ConfigMap");
        let text = format!(
            r#"{{"metadata":{{"name":"o{number}","uid":"u{number}","resourceVersion":"{version}"}}}}"#
        );
        RawObject::parse(text.as_bytes(), &gvk).unwrap()
    }

    #[test]
    fn the_objects_that_exist_are_taken_as_additions_while_others_change_them() {
        for round in 0..100 {
            let (store, unread) = (Store::default(), Unread::default());
            let apply = |deltas| unread.changed(&store.apply(deltas, Content::Whole));
            let all = (0..OBJECTS).map(|number| Delta::Present(object(number, 1)));
            apply(all.collect());
            let barrier = Barrier::new(2);
            let initial = std::thread::scope(|scope| {
                scope.spawn(|| {
                    barrier.wait();
                    for number in 0..OBJECTS / 2 {
                        apply(vec![Delta::Present(object(number, 2))]);
                        apply(vec![Delta::Deleted(object(OBJECTS - 1 - number, 2))]);
                    }
                });
                barrier.wait();
                unread.take_all()
            });
            let is_added = |change: &Change| matches!(change, Change::Added { .. });
            let other = initial.iter().find(|change| !is_added(change));
            assert!(other.is_none(), "round {round}: {other:?}");
        }
    }
}
