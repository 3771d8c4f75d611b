//! The hot loop detector of a kind: counts runs, and warns of hot loops.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lariat_cache::OwnWrite;
use lariat_core::{Causes, Gvk, ObjectKey, ResourceVersion};
use lariat_queue::LaneId;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::options::HotLoopOptions;
use super::suspect::{GAP, HotLoop, Lead, Suspect, is_led};

/// The maximum number of keys that are remembered.
const MOST: usize = 1024;

/// How long a key without two runs in a row is kept if there are too many.
const RECENT: Duration = Duration::from_secs(30);

/// Detects hot loops among the keys of a kind.
pub(crate) struct Detector {
    gvk: Gvk,
    options: HotLoopOptions,
    suspects: Mutex<BTreeMap<ObjectKey, Suspect>>,
    /// Whether there may be suspects. Most kinds are never written, and their runs take no lock.
    has_suspects: AtomicBool,
}

impl Detector {
    pub(crate) fn new(gvk: Gvk, options: HotLoopOptions) -> Self {
        Self {
            gvk,
            options,
            suspects: Mutex::default(),
            has_suspects: AtomicBool::new(false),
        }
    }

    /// Forgets all keys.
    pub(crate) fn clear(&self) {
        self.suspects.lock().clear();
    }

    /// Records an answered write of an object of the kind by a handler.
    pub(crate) fn wrote(&self, written: &OwnWrite, lead: Lead) {
        let wrote = |suspect: &mut Suspect, now| ((), suspect.wrote(written, lead, now));
        self.with(written.after.key(), true, wrote);
    }

    /// Records an answered write of a related object by a handler that was called for this key.
    pub(crate) fn wrote_related(&self, key: &ObjectKey, version: &ResourceVersion, lead: Lead) {
        let wrote = |suspect: &mut Suspect, _| (suspect.leads(version, lead), false);
        self.with(key, true, wrote);
    }

    /// Counts a run that begins; returns whether it is part of a hot loop by own writes or enqueues.
    pub(crate) fn began(&self, key: &ObjectKey, causes: &Causes) -> bool {
        let Some(runs) = self.options.runs else {
            return false;
        };
        let began = |suspect: &mut Suspect, now| suspect.began(key, causes, runs, now);
        self.with(key, causes.iter().any(is_led), began)
    }

    /// Returns how long a call waits that is part of a hot loop; none if it may begin.
    pub(crate) fn wait(&self, key: &ObjectKey, lane: LaneId, delay: Duration) -> Option<Duration> {
        let wait = |suspect: &mut Suspect, now| (suspect.wait(lane, delay, now), false);
        self.with(key, false, wait)
    }

    /// Calls a function with a suspect, and warns if that has found a new hot loop.
    ///
    /// Returns the default if the key is not a suspect, and is not to become one or there is no room.
    fn with<T: Default>(
        &self,
        key: &ObjectKey,
        is_new: bool,
        act: impl FnOnce(&mut Suspect, Instant) -> (T, bool),
    ) -> T {
        if self.options.runs.is_none() || !is_new && !self.has_suspects.load(Ordering::Relaxed) {
            return T::default();
        }
        self.has_suspects.store(true, Ordering::Relaxed);
        let now = Instant::now();
        let mut suspects = self.suspects.lock();
        if is_new && !suspects.contains_key(key) && has_room(&mut suspects, now) {
            suspects.insert(key.clone(), Suspect::default());
        }
        let Some(suspect) = suspects.get_mut(key) else {
            return T::default();
        };
        suspect.forget_if_quiet(now);
        suspect.touched = is_new.then_some(now).or(suspect.touched);
        let (result, is_found) = act(suspect, now);
        let found = suspect.found.as_ref().filter(|_| is_found).cloned();
        drop(suspects);
        // Logged after unlocking: a subscriber of `tracing` is foreign code.
        if let Some((hot_loop, _)) = found {
            tracing::warn!(
                kind = %self.gvk,
                key = %hot_loop.key,
                pattern = %hot_loop.pattern,
                handlers = hot_loop.handlers.join(", "),
                fields = hot_loop.fields.join(", "),
                triggered_by = hot_loop.triggered_by.as_deref(),
                rounds = hot_loop.rounds,
                "key is in a hot loop: write only what differs, and let one writer own each field"
            );
        }
        result
    }

    /// Returns how many keys are remembered, and their bound.
    pub(crate) fn table_sizes(&self) -> (usize, usize) {
        (self.suspects.lock().len(), MOST)
    }

    /// Returns the keys in hot loops, sorted, and forgets quiet ones.
    pub(crate) fn status(&self) -> Vec<HotLoop> {
        let (now, mut suspects) = (Instant::now(), self.suspects.lock());
        let found = suspects.values_mut().filter_map(|suspect| {
            suspect.forget_if_quiet(now);
            suspect.found.as_ref().map(|(found, _)| found.clone())
        });
        found.collect()
    }
}

/// Returns whether there is room for another key. If there is none, keys that are hardly in a loop are forgotten.
fn has_room(suspects: &mut BTreeMap<ObjectKey, Suspect>, now: Instant) -> bool {
    if suspects.len() >= MOST {
        suspects.retain(|_, suspect| {
            let kept = if suspect.runs < 2 { RECENT } else { GAP };
            suspect.found.is_some() || suspect.touched.is_some_and(|at| now - at < kept)
        });
    }
    suspects.len() < MOST
}
