//! Compaction by age: drops changes once they are old.
//!
//! As kube-apiserver does with etcd, it records the revision from time to time, and drops everything up
//! to a recorded revision once that is old enough.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::controller::{ControlPlane, Controller};
use crate::store::Change;

/// The number of revisions that are noted in one history age.
const NOTES: u32 = 8;

/// Forgets changes that are old.
#[derive(Debug, Default)]
pub(super) struct HistoryCompaction {
    /// Revisions and when each was noted, oldest first.
    notes: VecDeque<(Instant, u64)>,
    /// There are changes after the last note.
    has_changed: bool,
    /// The time of the next look; `None` while there is nothing to forget.
    next: Option<Instant>,
}

impl Controller for HistoryCompaction {
    fn observe(&mut self, plane: &ControlPlane, _: &Change) {
        let age = plane.server.time.history_age;
        // A zero age keeps changes until other bounds drop them.
        if age.is_zero() {
            return;
        }
        self.has_changed = true;
        if self.next.is_none() {
            self.next = Some(Instant::now() + age / NOTES);
        }
    }

    fn work(&mut self, plane: &ControlPlane) -> bool {
        let now = Instant::now();
        if self.next.is_none_or(|next| next > now) {
            return false;
        }
        let (store, age) = (&plane.server.store, plane.server.time.history_age);
        if std::mem::take(&mut self.has_changed) {
            // A note for each eighth of the age, not the time of each change: this bounds the memory, and costs at most
            // a quarter of the age in precision.
            self.notes.push_back((now, store.revision()));
        }
        let old = self.notes.partition_point(|(noted, _)| *noted + age <= now);
        if let Some((_, revision)) = self.notes.drain(..old).next_back() {
            // With how far open watches have read, so that they lose nothing.
            store.age_out(revision, &plane.server.watches.read_up_to());
        }
        self.next = (!self.notes.is_empty()).then(|| now + age / NOTES);
        false
    }

    fn due(&self, _: &ControlPlane) -> Option<Instant> {
        self.next
    }
}
