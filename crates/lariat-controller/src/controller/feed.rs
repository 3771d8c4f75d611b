//! Feeds changes of the cache into the work queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lariat_cache::{CachedObject, Change, Subscriber, Written};
use lariat_core::{Cause, Gvk};
use lariat_lease::Shards;
use lariat_queue::Add;

use crate::current::{self, Caller};
use crate::lane::Lanes;
use crate::payload::{Payload, Queue};
use crate::sentinel::Watchman;

/// Enqueues the keys of changed objects; the controller's cache subscriber.
pub(super) struct Feed {
    pub(super) gvk: Gvk,
    pub(super) queue: Queue,
    pub(super) lanes: Arc<Lanes>,
    pub(super) watchman: Arc<Watchman>,
    /// The ring that divides the keys. Keys of other members are not queued.
    pub(super) shards: Option<Shards>,
    /// The number of deletions so far; it numbers the next one.
    pub(super) deletions: AtomicU64,
}

impl Subscriber for Feed {
    fn changed(&self, changes: &[Change]) {
        let number = || self.deletions.fetch_add(1, Ordering::Relaxed);
        let lanes = self.lanes.list();
        let caller = current::caller();
        let ring = self.shards.as_ref();
        let own = ring.map(|shards| (shards, shards.share_of(&self.gvk)));
        let mut later = Vec::new();
        // The whole batch is added under one lock of the queue.
        self.queue.add_all(changes.iter().filter_map(|change| {
            if let Some((shards, share)) = &own {
                let key = shards.key_of(&self.gvk, change.object())?;
                if !share.holds(key) {
                    return None;
                }
            }
            let (mut due, priority) = lanes.due(change);
            if due.is_empty() {
                return None;
            }
            let cause = cause(change, caller.as_ref(), &self.gvk, &self.gvk);
            let payload = Payload::of(change, cause, &due, number).led_by(caller.as_ref());
            for (wait, lane) in lanes.take_debounced(&mut due, change) {
                let add = Add::after(wait).lanes(lane).priority(priority);
                later.push((change.key().clone(), add.payload(payload.clone())));
            }
            let add = Add::now().lanes(due).priority(priority).payload(payload);
            Some((change.key().clone(), add))
        }));
        if !later.is_empty() {
            self.queue.add_all(later);
        }
    }

    fn wrote(&self, written: &Written) {
        if let Some(caller) = current::caller() {
            let name = caller.name(&self.gvk);
            self.watchman.wrote(&caller.write(&name, written));
        }
    }
}

/// Returns a change of one kind as a cause of work for another. A change that is published on the task of a handler is
/// what the handler wrote: reflectors have tasks of their own.
pub(crate) fn cause(change: &Change, caller: Option<&Caller>, of: &Gvk, reader: &Gvk) -> Cause {
    let Some(caller) = caller else {
        return change.cause();
    };
    let (old, new) = match change {
        // A handler that subscribes gets the initial objects on its own task; it did not write them.
        Change::Added {
            object,
            initial: false,
        } => (None, object),
        Change::Updated { old, new } => (Some(old), new),
        _ => return change.cause(),
    };
    caller.wrote(of, old, new);
    Cause::Wrote {
        by: caller.name(reader),
        from: old.map(|old| old.version().clone()),
        to: new.version().clone(),
        chain: caller.leads_to(),
        during: caller.causing_run(),
    }
}

impl Feed {
    /// Returns the change by which the initial list publishes an object.
    pub(super) fn initial(object: &Arc<CachedObject>) -> Change {
        Change::Added {
            object: Arc::clone(object),
            initial: true,
        }
    }
}
