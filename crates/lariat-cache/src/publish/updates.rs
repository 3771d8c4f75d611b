//! The last updates of objects, to see afterwards what they changed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey, ResourceVersion, changed_fields};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::store::{CachedObject, Change};

/// How many paths a comparison returns.
const MOST_FIELDS: usize = 20;

/// The time in which as many bytes as fit may be added, after a first burst of as many.
///
/// Without it thousands of changes a second would push each other out within milliseconds, before a person can look, and
/// every replaced object would be freed long after it has left the processor's caches.
const KEPT: Duration = Duration::from_secs(10);

/// The last updates of objects of all kinds, within a number of bytes.
#[derive(Debug, Default)]
pub(crate) struct LastUpdates {
    /// The limit; zero if nothing is kept. A copy of that in `updates`, readable without the lock.
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
    /// The state after, as long as it may be compared: the cache may have replaced or deleted it since.
    new: Arc<CachedObject>,
    /// The bytes that both counted for when it was added; they may be packed since.
    bytes: usize,
}

impl LastUpdates {
    /// Sets the limit; what is above it is dropped.
    pub(crate) fn set_limit(&self, bytes: usize) {
        let mut updates = self.updates.lock();
        updates.limit = bytes;
        updates.paid = None;
        self.limit.store(bytes, Ordering::Relaxed);
        let mut dropped = Vec::new();
        updates.shrink(&mut dropped);
        drop(updates);
        // Freed after unlocking.
        drop(dropped);
    }

    /// Keeps the updates among some changes, as far as the rate allows.
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
            // Decoded values would not count, and nothing reads them here.
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

    /// Returns the paths of the fields that differ between two versions, if updates from the one and to the other are kept.
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
        drop(updates);
        Some(changed(&old, &new))
    }

    /// Returns how many updates are kept, and their bound.
    pub(crate) fn remembered(&self) -> (usize, usize) {
        let updates = self.updates.lock();
        // Each state counts at least its own size.
        let least = 2 * size_of::<CachedObject>();
        (updates.list.len(), updates.limit / least)
    }
}

impl Updates {
    /// Returns whether fewer than `limit` bytes are to be paid for.
    fn allows(&self, now: Instant) -> bool {
        self.paid.is_none_or(|paid| paid < now + KEPT)
    }

    fn add(&mut self, update: Update, now: Instant) {
        let share = update.bytes as f64 / self.limit.max(1) as f64;
        let paid = self.paid.map_or(now, |paid| paid.max(now));
        // An update above the limit is not kept; another one is tried after at most as long.
        self.paid = Some(paid + KEPT.mul_f64(share.min(1.0)));
        self.bytes += update.bytes;
        self.list.push_back(update);
    }

    /// Removes the oldest updates that are above the limit.
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
    // Of a state without content only the metadata can be compared.
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
