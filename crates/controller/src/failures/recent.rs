//! The recent failures of a handler: logged, or still to be summarised.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::failed::Failed;
use super::group::Group;
use super::signature::signature;

/// The recent failures of a handler: logged, or still to be summarised.
#[derive(Default)]
pub(crate) struct Failures {
    /// Whether `recent` is not empty. While nothing fails, a successful call takes no lock.
    are_any: AtomicBool,
    recent: Mutex<Recent>,
}

#[derive(Default)]
struct Recent {
    /// The keys that the handler fails for, with the signature of the error; at most [`KEYS`].
    failing: HashMap<ObjectKey, u64>,
    /// The failures by error: at most [`GROUPS`], and one group for all other errors.
    groups: BTreeMap<u64, Group>,
}

/// The maximum number of failing keys of a handler that are tracked.
pub(crate) const KEYS: usize = 4096;

/// The maximum number of different errors of a handler that are counted separately.
const GROUPS: usize = 16;

/// The signature of all errors that are not counted separately.
const OTHER: u64 = 0;

impl Failures {
    /// Logs a failure, or counts it; returns whether a line is due earlier than before.
    pub(crate) fn failed(&self, failed: &Failed<'_>) -> bool {
        let before = self.due();
        let mut recent = self.recent.lock();
        self.are_any.store(true, Ordering::Relaxed);
        let is_logged = recent.failed(failed, Instant::now());
        drop(recent);
        failed.log(!is_logged);
        self.is_due_before(before)
    }

    /// Records a success; returns whether a line is due earlier than before.
    pub(crate) fn succeeded(&self, key: &ObjectKey) -> bool {
        // Relaxed is enough. Only an earlier failure of this key matters here. The worker that recorded it gave the key
        // back to the queue, whose lock makes the flag visible to the worker that dequeues the key next.
        if !self.are_any.load(Ordering::Relaxed) {
            return false;
        }
        let before = self.due();
        self.recent.lock().release(key, Some(Instant::now()));
        self.is_due_before(before)
    }

    /// Returns the keys that the handler still fails for, in no order; the others are forgotten.
    pub(crate) fn sweep(&self, still_fails: impl Fn(&ObjectKey) -> bool) -> Vec<ObjectKey> {
        if !self.are_any.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut recent = self.recent.lock();
        let keys = recent.failing.keys().cloned();
        let (failing, gone): (Vec<_>, Vec<_>) = keys.partition(still_fails);
        gone.iter().for_each(|key| recent.release(key, None));
        failing
    }

    /// Returns how many failing keys are tracked.
    pub(crate) fn len(&self) -> usize {
        self.recent.lock().failing.len()
    }

    /// Returns when [`log_due`](Self::log_due) has something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        let recent = self.recent.lock();
        recent.groups.values().filter_map(Group::due).min()
    }

    fn is_due_before(&self, at: Option<Instant>) -> bool {
        let due = self.due();
        due.is_some_and(|due| at.is_none_or(|at| due < at))
    }

    /// Logs what is due, and forgets errors that are over; at the end of a run logs everything.
    ///
    /// Keys that are failing then are retried by the next run, which says when they recover.
    pub(crate) fn log_due(&self, kind: &Gvk, handler: &str, is_end: bool) {
        let mut recent = self.recent.lock();
        let lines = recent.take_lines(Instant::now(), is_end);
        self.are_any
            .store(!recent.groups.is_empty(), Ordering::Relaxed);
        drop(recent);
        // Logged after unlocking: a subscriber of `tracing` is foreign code.
        lines.iter().for_each(|line| line.log(kind, handler));
    }
}

impl Recent {
    /// Counts a failure; returns whether it is logged now, in a line of its own.
    fn failed(&mut self, failed: &Failed<'_>, now: Instant) -> bool {
        let mut signature = signature(failed.error, failed.key);
        if self.groups.len() >= GROUPS && !self.groups.contains_key(&signature) {
            signature = OTHER;
        }
        let is_again = self.failing.get(failed.key) == Some(&signature);
        let fails_on = failed.again_in.is_some();
        if !is_again || !fails_on {
            // To fail with another error, or for good, is no success.
            self.release(failed.key, None);
        }
        let group = self.groups.entry(signature).or_default();
        if !is_again && fails_on && self.failing.len() < KEYS {
            self.failing.insert(failed.key.clone(), signature);
            group.failing += 1;
        }
        let is_due = !is_again || failed.attempt.is_power_of_two();
        group.failed(failed, is_due, now)
    }

    /// Returns the lines that are due, and drops groups that are over; at the end takes all, and keeps failing keys.
    fn take_lines(&mut self, now: Instant, is_end: bool) -> Vec<Group> {
        let mut lines = Vec::new();
        self.groups.retain(|_, group| {
            let is_due = is_end || group.due().is_some_and(|due| due <= now);
            let line = is_due.then(|| group.take_line(now)).flatten();
            let is_kept = if is_end {
                group.failing > 0
            } else {
                !is_due || line.is_some()
            };
            lines.extend(line);
            is_kept
        });
        if self.groups.is_empty() {
            self.failing.clear();
        }
        lines
    }

    /// Removes a key; `success` says that it has succeeded.
    fn release(&mut self, key: &ObjectKey, success: Option<Instant>) {
        let signature = self.failing.remove(key);
        if let Some(group) = signature.and_then(|of| self.groups.get_mut(&of)) {
            group.release(success);
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
