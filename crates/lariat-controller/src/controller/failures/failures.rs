//! The recent failures of a kind's handlers, and when they are logged.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{self, Instant};

use super::failed::Failed;
use super::group::Group;
use super::line;
use super::line::Line;
use super::signature::signature;
use crate::lane::{LaneList, Lanes};

/// The recent failures of a kind's handlers: logged, or still to be summarised.
pub(crate) struct Failures {
    gvk: Gvk,
    /// Whether `handlers` is not empty. While nothing fails, a successful call takes no lock.
    are_any: AtomicBool,
    handlers: Mutex<Vec<OfHandler>>,
    /// Notified when a summary may be due earlier than before.
    changed: Notify,
}

/// The recent failures of one handler.
struct OfHandler {
    handler: Arc<str>,
    /// The keys that the handler fails for, with the signature of the error.
    ///
    /// At most [`KEYS`].
    failing: HashMap<ObjectKey, u64>,
    /// The failures by error: at most [`GROUPS`], and one group for all other errors.
    groups: Vec<Group>,
}

/// Returns whether a handler still fails for a key: the queue knows what is retried.
pub(crate) type StillFails<'a> = dyn Fn(&Arc<str>, &ObjectKey) -> bool + Send + Sync + 'a;

/// The maximum number of failing keys of a handler that are tracked.
pub(crate) const KEYS: usize = 4096;

/// The maximum number of different errors of a handler that are counted separately.
const GROUPS: usize = 16;

/// The signature of all errors that are not counted separately.
const OTHER: u64 = 0;

impl Failures {
    pub(crate) fn new(gvk: Gvk) -> Self {
        Self {
            gvk,
            are_any: AtomicBool::new(false),
            handlers: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Logs a failure, or counts it for the next summary.
    pub(crate) fn failed(&self, failed: &Failed<'_>) {
        let (line, is_sooner) = {
            let mut handlers = self.handlers.lock();
            let at = handlers
                .iter()
                .position(|of| Arc::ptr_eq(&of.handler, failed.handler))
                .unwrap_or_else(|| {
                    handlers.push(OfHandler::new(failed.handler));
                    handlers.len() - 1
                });
            self.are_any.store(true, Ordering::Relaxed);
            handlers[at].failed(failed, Instant::now())
        };
        if is_sooner {
            self.changed.notify_waiters();
        }
        match line {
            Some(line) => line.log(&self.gvk),
            None => line::log_folded(&self.gvk, failed),
        }
    }

    /// Releases the keys that a handler does not fail for any more, although no call has succeeded.
    ///
    /// They are no longer queued, or belong to another member of a ring.
    pub(crate) fn sweep(&self, still_fails: &StillFails<'_>) {
        if !self.are_any.load(Ordering::Relaxed) {
            return;
        }
        let mut handlers = self.handlers.lock();
        handlers.iter_mut().for_each(|of| of.sweep(still_fails));
    }

    /// Records that a handler succeeded for a key.
    pub(crate) fn succeeded(&self, handler: &Arc<str>, key: &ObjectKey) {
        // Relaxed is enough. Only an earlier failure of this key matters here. The worker that recorded it gave the key
        // back to the queue, whose lock makes the flag visible to the worker that dequeues the key next.
        if !self.are_any.load(Ordering::Relaxed) {
            return;
        }
        let mut handlers = self.handlers.lock();
        let of = handlers
            .iter_mut()
            .find(|of| Arc::ptr_eq(&of.handler, handler));
        if of.is_some_and(|of| of.succeeded(key, Instant::now())) {
            drop(handlers);
            self.changed.notify_waiters();
        }
    }

    /// Waits until a summary is due, and logs it. Call it in a loop.
    pub(crate) async fn sum_up(&self, lanes: &Lanes, still_fails: &StillFails<'_>) {
        loop {
            // Created before the list is read, so that a change in between is not missed.
            let changed = self.changed.notified();
            let Some(next) = self.next() else {
                changed.await;
                continue;
            };
            tokio::select! {
                () = time::sleep_until(next) => {
                    self.sweep(still_fails);
                    return self.log_due(&lanes.list(), Instant::now());
                }
                () = changed => {}
            }
        }
    }

    /// Logs failures that were counted but not logged, and forgets all failures.
    pub(crate) fn flush(&self) {
        let handlers = std::mem::take(&mut *self.handlers.lock());
        self.are_any.store(false, Ordering::Relaxed);
        let now = Instant::now();
        for OfHandler {
            handler,
            mut groups,
            ..
        } in handlers
        {
            let lines = groups
                .iter_mut()
                .filter_map(|group| group.flush(&handler, now));
            lines.for_each(|line| line.log(&self.gvk));
        }
    }

    /// Forgets the failures of deregistered handlers.
    pub(crate) fn forget_gone(&self, lanes: &LaneList) {
        if !self.are_any.load(Ordering::Relaxed) {
            return;
        }
        let mut handlers = self.handlers.lock();
        handlers.retain(|of| of.is_one_of(lanes));
        self.are_any.store(!handlers.is_empty(), Ordering::Relaxed);
    }

    /// Returns the keys a handler fails for, in no order.
    pub(crate) fn failing(&self, handler: &Arc<str>) -> Vec<ObjectKey> {
        let keys = self.of(handler, |of| of.failing.keys().cloned().collect());
        keys.unwrap_or_default()
    }

    fn of<T>(&self, handler: &Arc<str>, read: impl FnOnce(&OfHandler) -> T) -> Option<T> {
        if !self.are_any.load(Ordering::Relaxed) {
            return None;
        }
        let handlers = self.handlers.lock();
        let mut handlers = handlers.iter();
        let of = handlers.find(|of| Arc::ptr_eq(&of.handler, handler));
        of.map(read)
    }

    /// Returns how many failing keys are tracked.
    pub(crate) fn keys(&self) -> usize {
        let handlers = self.handlers.lock();
        handlers.iter().map(|of| of.failing.len()).sum()
    }

    fn next(&self) -> Option<Instant> {
        let handlers = self.handlers.lock();
        let groups = handlers.iter().flat_map(|of| &of.groups);
        groups.map(Group::due).min()
    }

    fn log_due(&self, lanes: &LaneList, now: Instant) {
        let mut lines = Vec::new();
        {
            let mut handlers = self.handlers.lock();
            // Deregistered handlers neither fail nor recover.
            handlers.retain(|of| of.is_one_of(lanes));
            for OfHandler {
                handler, groups, ..
            } in handlers.iter_mut()
            {
                lines.extend(
                    groups
                        .iter_mut()
                        .filter_map(|group| group.tick(handler, now)),
                );
                groups.retain(|group| !group.is_over(now));
            }
            handlers.retain(|of| !of.groups.is_empty());
            self.are_any.store(!handlers.is_empty(), Ordering::Relaxed);
        }
        // Logged after unlocking: a subscriber of `tracing` is foreign code.
        lines.iter().for_each(|line| line.log(&self.gvk));
    }
}

impl OfHandler {
    fn new(handler: &Arc<str>) -> Self {
        Self {
            handler: Arc::clone(handler),
            failing: HashMap::new(),
            groups: Vec::new(),
        }
    }

    fn is_one_of(&self, lanes: &LaneList) -> bool {
        let mut lanes = lanes.iter();
        lanes.any(|lane| Arc::ptr_eq(lane.name(), &self.handler))
    }

    /// Releases the keys that the handler does not fail for any more.
    fn sweep(&mut self, still_fails: &StillFails<'_>) {
        let gone = |(key, _): &(&ObjectKey, &u64)| !still_fails(&self.handler, key);
        let gone: Vec<ObjectKey> = self
            .failing
            .iter()
            .filter(gone)
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            if let Some(signature) = self.failing.remove(&key) {
                self.release(signature, None);
            }
        }
    }

    /// Counts a failure.
    ///
    /// Returns the line to log now, and whether the next summary is due earlier than before.
    fn failed(&mut self, failed: &Failed<'_>, now: Instant) -> (Option<Line>, bool) {
        let (is_final, comes_again) = (failed.next.is_final(), failed.next.delay().is_some());
        let wanted = signature(failed.error, failed.key, is_final);
        let (at, is_new) = self.group(wanted, failed, now);
        let (signature, due) = (self.groups[at].signature, self.groups[at].due());
        let before = self.failing.remove(failed.key);
        // A key is in one group at a time.
        if let Some(before) = before.filter(|before| *before != signature) {
            // The key fails with another error now. That is no success, so no recovery is logged.
            self.release(before, None);
        }
        if comes_again {
            // A key beyond the bound is counted in the totals, but its success cannot be attributed to a group.
            let has_room = self.failing.len() < KEYS;
            if has_room {
                self.failing.insert(failed.key.clone(), signature);
            }
            let is_counted = before == Some(signature);
            self.groups[at].holds(is_counted, has_room);
        } else if before == Some(signature) {
            self.release(signature, None);
        }
        let line = self.groups[at].add(failed, now, is_new);
        (line, is_new || self.groups[at].due() < due)
    }

    /// Records a success; returns whether a group has no failing keys any more.
    fn succeeded(&mut self, key: &ObjectKey, now: Instant) -> bool {
        let signature = self.failing.remove(key);
        signature.is_some_and(|signature| self.release(signature, Some(now)))
    }

    /// Removes a key from its group.
    ///
    /// Returns whether it was the last key of the group and has succeeded.
    fn release(&mut self, signature: u64, success: Option<Instant>) -> bool {
        let mut groups = self.groups.iter_mut();
        let group = groups.find(|group| group.signature == signature);
        group.is_some_and(|group| group.release(success))
    }

    /// Returns the index of an error's group, and whether the group is new.
    fn group(&mut self, signature: u64, failed: &Failed<'_>, now: Instant) -> (usize, bool) {
        let find = |signature| {
            let mut groups = self.groups.iter();
            groups.position(|group| group.signature == signature)
        };
        let is_full = self.groups.len() >= GROUPS;
        let known = find(signature).or_else(|| is_full.then(|| find(OTHER)).flatten());
        if let Some(at) = known {
            return (at, false);
        }
        let signature = if is_full { OTHER } else { signature };
        self.groups.push(Group::new(signature, failed, now));
        (self.groups.len() - 1, true)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
