//! Feeds the changes of a cache into the work queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lariat_cache::{CachedObject, Change, OwnWrite, Subscriber};
use lariat_core::{Cause, Gvk};
use lariat_lease::Shards;
use lariat_queue::Add;

use super::pieces::add_in_pieces;
use super::shards::OwnObjects;
use crate::current::{self, Caller};
use crate::hot_loop::Detector;
use crate::lane::Lanes;
use crate::payload::{Payload, Queue};
use crate::unnoticed::is_unnoticed;

/// The subscriber of the controller's own cache: enqueues the keys of changed objects.
pub(super) struct Feed {
    pub(super) gvk: Gvk,
    pub(super) queue: Queue,
    pub(super) lanes: Arc<Lanes>,
    pub(super) detector: Arc<Detector>,
    /// The ring that divides the keys. Keys of other members are not queued.
    pub(super) shards: Option<Shards>,
    /// The number of the next deletion.
    pub(super) deletions: Arc<AtomicU64>,
}

impl Subscriber for Feed {
    fn changed(&self, changes: &[Change]) {
        let number = || self.deletions.fetch_add(1, Ordering::Relaxed);
        let lanes = self.lanes.list();
        let caller = current::caller();
        let own = OwnObjects::new(&self.gvk, self.shards.as_ref());
        let mut later = Vec::new();
        // One lock for many changes: an initial list has thousands.
        let adds = changes.iter().filter_map(|change| {
            // A key of another member is not even queued. When it moves here, it is enqueued as a gain.
            if !own.hold(change.object()) {
                return None;
            }
            let (mut due, mut priority) = lanes.due(change);
            // With its controlling owner the key has moved here, and the other member drops the calls that wait for it.
            if let Change::Updated { old, new } = change
                && !own.hold(old)
            {
                due.merge(&lanes.may_be_due(new));
                priority = lanes.priority(&due, change);
            }
            if let Some(caller) = caller
                .as_ref()
                .filter(|caller| self.is_unnoticed(change, caller))
            {
                due = lanes.without(&due, caller.handler());
            }
            if due.is_empty() {
                return None;
            }
            let cause = cause(change, caller.as_ref(), &self.gvk);
            tracing::trace!(target: "lariat::queue", kind = %self.gvk, key = %change.key(), %cause, "queued");
            // Before debounced lanes are taken out of `due`: a deletion is recorded for all lanes that must handle it.
            let payload = Payload::of(change, cause, &due, number);
            for (wait, lane) in lanes.take_debounced(&mut due, change) {
                let add = Add::after(wait).lanes(lane).priority(priority);
                later.push((change.key().clone(), add.payload(payload.clone())));
            }
            let add = Add::now().lanes(due).priority(priority).payload(payload);
            Some((change.key().clone(), add))
        });
        add_in_pieces(&self.queue, adds);
        add_in_pieces(&self.queue, later.into_iter());
    }

    fn wrote(&self, written: &OwnWrite) {
        if let Some(caller) = current::caller() {
            self.detector.wrote(written, caller.lead(&self.gvk));
        }
    }
}

/// Returns a change of one kind as the cause of a run of another.
///
/// A change that is published on a handler's own task is a write of that handler, because reflectors publish on tasks
/// of their own.
pub(crate) fn cause(change: &Change, caller: Option<&Caller>, reader: &Gvk) -> Cause {
    let Some(caller) = caller else {
        return change.cause();
    };
    let (old, new) = match change {
        // A handler that subscribes to a cache gets the initial objects on its own task, but did not write them.
        Change::Added {
            object,
            initial: false,
        } => (None, object),
        Change::Updated { old, new } => (Some(old), new),
        _ => return change.cause(),
    };
    Cause::Wrote {
        by: caller.name(reader),
        from: old.map(|old| old.version().clone()),
        to: new.version().clone(),
        during: caller.causing_run(),
    }
}

impl Feed {
    /// Returns whether a change is a write of the calling handler that does not call it again.
    fn is_unnoticed(&self, change: &Change, caller: &Caller) -> bool {
        let is_own = *caller.gvk() == self.gvk && caller.key() == change.key();
        is_own && is_unnoticed(change)
    }

    /// Returns an object as the initial list publishes it.
    pub(super) fn initial(object: &Arc<CachedObject>) -> Change {
        Change::Added {
            object: Arc::clone(object),
            initial: true,
        }
    }
}
