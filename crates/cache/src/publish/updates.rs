//! The last updates of objects: which fields they changed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey, ResourceVersion, changed_fields};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::store::{CachedObject, Change};

/// How many paths a comparison returns at most.
const MOST_FIELDS: usize = 20;

/// The time in which updates of as many bytes as the limit may be added.
///
/// A first burst of as many is allowed. Without this rate, thousands of changes a second would displace each other
/// within milliseconds, before a person can look at them, and every replaced object would be freed long after it has
/// left the processor's caches.
const KEPT: Duration = Duration::from_secs(10);

/// The last updates of objects of all kinds, up to a number of bytes.
#[derive(Debug, Default)]
pub(crate) struct LastUpdates {
    /// The limit, readable without the lock; zero keeps nothing.
    limit: AtomicUsize,
    updates: Mutex<Updates>,
}

#[derive(Debug, Default)]
struct Updates {
    limit: usize,
    /// The sum of the bytes in `list`; at most `limit`.
    bytes: usize,
    /// Until when the added bytes use up the rate of `limit` bytes in `KEPT` (GCRA).
    paid: Option<Instant>,
    /// The oldest first.
    list: VecDeque<Update>,
}

#[derive(Debug)]
struct Update {
    gvk: Gvk,
    old: Arc<CachedObject>,
    /// The state after the update; the cache may have replaced or deleted it since.
    new: Arc<CachedObject>,
    /// The bytes of both states when they were added; they may be packed since.
    bytes: usize,
}

impl LastUpdates {
    /// Sets the limit, and drops the oldest updates above it.
    pub(crate) fn set_limit(&self, bytes: usize) {
        let mut updates = self.updates.lock();
        updates.limit = bytes;
        updates.paid = None;
        self.limit.store(bytes, Ordering::Relaxed);
        let mut dropped = Vec::new();
        updates.shrink(&mut dropped);
        drop(updates);
        // Freed after unlocking: it takes long, and the tasks that publish wait for the lock.
        drop(dropped);
    }

    /// Adds the updates among some changes, as far as the rate allows.
    pub(super) fn note(&self, gvk: &Gvk, changes: &[Change]) {
        if self.limit.load(Ordering::Relaxed) == 0 {
            return;
        }
        let now = Instant::now();
        let mut dropped = Vec::new();
        let mut updates = self.updates.lock();
        for change in changes {
            let Change::Updated { old, new } = change else {
                continue;
            };
            if !updates.allows(now) {
                break;
            }
            // Decoded values are not counted, and nothing reads them here.
            old.retain(false);
            let update = Update {
                gvk: gvk.clone(),
                old: Arc::clone(old),
                new: Arc::clone(new),
                bytes: old.bytes() + new.bytes(),
            };
            updates.add(update, now);
            updates.shrink(&mut dropped);
        }
        drop(updates);
        drop(dropped);
    }

    /// Returns the paths of the fields that differ between two versions.
    ///
    /// `None` unless an update from the one and an update to the other are kept.
    pub(crate) fn changed(
        &self,
        gvk: &Gvk,
        key: &ObjectKey,
        from: &ResourceVersion,
        to: &ResourceVersion,
    ) -> Option<Vec<String>> {
        let updates = self.updates.lock();
        let of_key = |update: &&Update| update.old.key() == key && update.gvk == *gvk;
        let all = || updates.list.iter().rev().filter(of_key);
        let first = all().find(|update| update.old.version() == from)?;
        let last = all().find(|update| update.new.version() == to)?;
        let (old, new) = (Arc::clone(&first.old), Arc::clone(&last.new));
        // Compared after unlocking: it decodes both states.
        drop(updates);
        Some(changed(&old, &new))
    }

    /// Returns how many updates are kept, and the upper bound.
    pub(crate) fn table_sizes(&self) -> (usize, usize) {
        let updates = self.updates.lock();
        // Each state counts for at least its own size.
        let least = 2 * size_of::<CachedObject>();
        (updates.list.len(), updates.limit / least)
    }
}

impl Updates {
    /// Returns whether the rate allows another update.
    fn allows(&self, now: Instant) -> bool {
        self.paid.is_none_or(|paid| paid < now + KEPT)
    }

    fn add(&mut self, update: Update, now: Instant) {
        let share = update.bytes as f64 / self.limit.max(1) as f64;
        let paid = self.paid.map_or(now, |paid| paid.max(now));
        // An update above the limit is not kept; another one is allowed after at most `KEPT`.
        self.paid = Some(paid + KEPT.mul_f64(share.min(1.0)));
        self.bytes += update.bytes;
        self.list.push_back(update);
    }

    /// Removes the oldest updates until the limit is kept.
    fn shrink(&mut self, dropped: &mut Vec<Update>) {
        while self.bytes > self.limit {
            let Some(oldest) = self.list.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes;
            dropped.push(oldest);
        }
    }
}

/// Returns the paths of the fields that differ between two states.
fn changed(old: &CachedObject, new: &CachedObject) -> Vec<String> {
    // If one state has no content, only the metadata can be compared.
    let whole = old.has_content() && new.has_content();
    let [old, new] = [old, new].map(|object| {
        let json = object.json().unwrap_or_default();
        let mut value: Value = serde_json::from_slice(&json).unwrap_or_default();
        if whole {
            value
        } else {
            json!({"metadata": value.get_mut("metadata").map(Value::take)})
        }
    });
    changed_fields(&old, &new, MOST_FIELDS)
}
