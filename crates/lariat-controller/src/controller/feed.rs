//! From the cache to the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lariat_cache::{CachedObject, Change, Subscriber, Written};
use lariat_core::{Cause, Gvk};
use lariat_queue::Add;

use super::core::Queue;
use crate::current::{self, Caller};
use crate::lane::Lanes;
use crate::payload::Payload;
use crate::sentinel::Watchman;

/// Puts what the cache tells into the queue.
pub(super) struct Feed {
    pub(super) gvk: Gvk,
    pub(super) queue: Queue,
    pub(super) lanes: Arc<Lanes>,
    pub(super) watchman: Arc<Watchman>,
    /// How many deletions there were.
    pub(super) deletions: AtomicU64,
}

impl Subscriber for Feed {
    fn changed(&self, changes: &[Change]) {
        let number = || self.deletions.fetch_add(1, Ordering::Relaxed);
        let lanes = self.lanes.list();
        let caller = current::caller();
        self.queue.add_all(changes.iter().filter_map(|change| {
            let (due, priority) = lanes.due(change);
            if due.is_empty() {
                return None;
            }
            let cause = cause(change, caller.as_ref(), &self.gvk);
            let payload = Payload::of(change, cause, &due, number);
            let add = Add::now().lanes(due).priority(priority).payload(payload);
            Some((change.key().clone(), add))
        }));
    }

    fn wrote(&self, written: &Written) {
        if let Some(caller) = current::caller() {
            self.watchman
                .wrote(written, &caller.name(&self.gvk), caller.chain);
        }
    }
}

/// Returns a change as a cause of work. What is told on the task of a handler is what it wrote: reflectors have
/// tasks of their own.
pub(crate) fn cause(change: &Change, caller: Option<&Caller>, told_to: &Gvk) -> Cause {
    let Some(caller) = caller else {
        return change.cause();
    };
    let (from, to) = match change {
        // What a handler sees first by subscribing is told on its task too.
        Change::Added {
            object,
            initial: false,
        } => (None, object.version()),
        Change::Updated { old, new } => (Some(old.version().clone()), new.version()),
        _ => return change.cause(),
    };
    Cause::Wrote {
        by: caller.name(told_to),
        from,
        to: to.clone(),
        chain: caller.chain.saturating_add(1),
    }
}

impl Feed {
    /// Returns an object as if it had just come into sight.
    pub(super) fn initial(object: &Arc<CachedObject>) -> Change {
        Change::Added {
            object: Arc::clone(object),
            initial: true,
        }
    }
}
