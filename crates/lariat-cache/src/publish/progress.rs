//! The progress of a kind: what its reflectors report, and what its status shows.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lariat_core::{Gvk, ResourceVersion};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::status::{KindStatus, Phase, Reconnect};
use super::user::Usage;
use crate::store::Store;

/// The progress of a kind: written by its reflectors, read by all of its users.
#[derive(Debug)]
pub(crate) struct Progress {
    gvk: Gvk,
    usage: Arc<Usage>,
    phase: watch::Sender<Phase>,
    /// Whether the cache has ever synced.
    ///
    /// Not among the totals, whose lock comes before that of the phase.
    was_filled: AtomicBool,
    /// Since when readers have waited.
    ///
    /// Its lock comes after that of the totals and before that of the phase.
    unreadable: UnreadableSince,
    totals: Mutex<Totals>,
    /// The bytes of the bodies of answers.
    received: AtomicU64,
}

#[derive(Debug, Default)]
struct Totals {
    /// The state of each reflector of the kind: one, or one per namespace.
    segments: Vec<Part>,
    /// The number of the current reflectors; reports of earlier ones are ignored.
    generation: u64,
    loads: u64,
    lists: u64,
    watches: u64,
    reconnects: [u64; Reconnect::ALL.len()],
    unreadable: u64,
    last_error: Option<String>,
    /// Whether `last_error` was logged.
    is_logged: bool,
    /// The delay before the next attempt after `last_error`.
    retry_in: Option<Duration>,
    last_received: Option<Instant>,
    version: Option<ResourceVersion>,
    /// Since when the kind has not been served.
    missing_since: Option<Instant>,
}

/// The state of one reflector.
#[derive(Debug, Clone, Default)]
struct Part {
    phase: Phase,
    /// Since when a synced cache has had no watch.
    interrupted: Option<Instant>,
    /// The namespace, if the cache is used without it because it is forbidden.
    forbidden: Option<Arc<str>>,
}

/// A failure, as reported to status and log.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// What the failure means for the cache.
    pub(crate) summary: &'static str,
    pub(crate) error: String,
    /// Whether the failure is usual and most often over in seconds.
    pub(crate) is_brief: bool,
}

/// The progress of one reflector.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    progress: Arc<Progress>,
    number: usize,
    generation: u64,
}

impl Progress {
    pub(crate) fn new(gvk: Gvk, usage: Arc<Usage>) -> Self {
        Self {
            gvk,
            usage,
            phase: watch::Sender::new(Phase::Idle),
            was_filled: AtomicBool::new(false),
            unreadable: UnreadableSince::default(),
            totals: Mutex::default(),
            received: AtomicU64::new(0),
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        let is_filled = phase == Phase::Synced;
        if is_filled {
            self.was_filled.store(true, Ordering::Relaxed);
        }
        // Published before the time is reset: a reader in between sees the synced phase, and does not store a time.
        self.phase.send_replace(phase);
        if is_filled {
            self.unreadable.reset();
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    pub(crate) fn phases(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Begins a run, and resets how long the kind was missing or not synced.
    pub(crate) fn start(self: &Arc<Self>) {
        self.totals.lock().missing_since = None;
        self.unreadable.reset();
        self.begin(0);
    }

    /// Begins with a new set of reflectors; the previous ones have ended.
    pub(crate) fn begin(self: &Arc<Self>, segments: usize) -> Vec<Segment> {
        let mut totals = self.totals.lock();
        let part = Part {
            phase: Phase::Resolving,
            ..Part::default()
        };
        totals.segments = vec![part; segments];
        totals.generation += 1;
        let generation = totals.generation;
        drop(totals);
        self.enter(Phase::Resolving);
        let segment = |number| Segment {
            progress: Arc::clone(self),
            number,
            generation,
        };
        (0..segments).map(segment).collect()
    }

    /// Records that the cache is not synced, because what it must contain changed.
    pub(crate) fn behind(&self) {
        let mut totals = self.totals.lock();
        // The reflectors of the previous set may still report; they must not mark the cache as synced.
        totals.generation += 1;
        self.phase.send_if_modified(|phase| {
            let was_filled = matches!(phase, Phase::Synced | Phase::Listing { .. });
            if was_filled {
                *phase = Phase::Resolving;
            }
            was_filled
        });
    }

    pub(crate) fn failed(&self, trouble: &Trouble, retry_in: Option<Duration>) {
        // Before the lock of the totals, under which no other lock is taken.
        let is_required = self.usage.is_required();
        let mut totals = self.totals.lock();
        let (kind, error) = (&self.gvk, &trouble.error);
        let plain = retry_in.map(tracing::field::debug);
        let is_known = totals.last_error.as_ref() == Some(error);
        // An error that repeats is logged once, not with every retry.
        if trouble.is_brief || (is_known && totals.is_logged) {
            tracing::debug!(%kind, %error, retry_in = plain, "the cache is not up to date yet");
            totals.is_logged &= is_known;
        } else {
            // No warnings for optional kinds, which come and go with their CRDs.
            let summary = trouble.summary;
            if is_required {
                tracing::warn!(%kind, %error, retry_in = plain, "{summary}");
            } else {
                tracing::info!(%kind, %error, retry_in = plain, "{summary}");
            }
            totals.is_logged = true;
        }
        if !is_known {
            totals.last_error = Some(error.clone());
        }
        totals.retry_in = retry_in;
    }

    /// Records that the kind is not served; returns since when.
    pub(crate) fn missing_since(&self, now: Instant) -> Instant {
        *self.totals.lock().missing_since.get_or_insert(now)
    }

    /// Records the version of the loaded objects of an earlier run.
    pub(crate) fn found(&self, version: &ResourceVersion) {
        self.totals.lock().version = Some(version.clone());
    }

    /// Returns whether the cache has ever synced.
    pub(crate) fn was_filled(&self) -> bool {
        self.was_filled.load(Ordering::Relaxed)
    }

    /// Returns since when readers have found the cache unreadable in this run.
    ///
    /// Returns the present time if it is readable.
    pub(crate) fn unreadable_since(&self, is_readable: impl FnOnce() -> bool) -> Instant {
        self.unreadable.get(is_readable)
    }

    /// Returns the namespaces that the cache is used without, because they are forbidden.
    pub(crate) fn forbidden(&self) -> Vec<Arc<str>> {
        self.totals.lock().forbidden()
    }

    /// Returns the version of the store.
    pub(crate) fn version(&self) -> Option<ResourceVersion> {
        self.totals.lock().version.clone()
    }

    pub(crate) fn status(&self, store: &Store) -> KindStatus {
        // Before the lock of the totals: reflectors report while they hold locks of the store.
        let (objects, bytes, storage) = (store.len(), store.bytes(), store.storage());
        let totals = self.totals.lock();
        let forbidden = totals.forbidden();
        let is_forbidden = || format!("forbidden namespaces: {}", forbidden.join(", "));
        let last_error = totals.last_error.clone();
        KindStatus {
            gvk: self.gvk.clone(),
            phase: self.phase(),
            objects,
            bytes,
            storage,
            decodes: store.decodes(),
            hits: store.hits(),
            version: totals.version.clone(),
            loads: totals.loads,
            lists: totals.lists,
            watches: totals.watches,
            reconnects: totals.reconnects,
            received: self.received.load(Ordering::Relaxed),
            unreadable: totals.unreadable,
            last_received: totals.last_received.map(|at| at.elapsed()),
            interrupted: totals.interrupted().map(|since| since.elapsed()),
            retry_in: last_error.as_ref().and(totals.retry_in),
            last_error: last_error.or_else(|| (!forbidden.is_empty()).then(is_forbidden)),
            forbidden_namespaces: forbidden.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Segment {
    pub(crate) fn gvk(&self) -> &Gvk {
        &self.progress.gvk
    }

    pub(crate) fn is_synced(&self) -> bool {
        let totals = self.progress.totals.lock();
        let part = totals.segments.get(self.number);
        part.is_some_and(|part| part.phase == Phase::Synced)
    }

    /// Sets the phase of this reflector.
    ///
    /// The phase of the kind follows from the phases of all its reflectors.
    pub(crate) fn enter(&self, phase: Phase) {
        let mut totals = self.progress.totals.lock();
        // A reflector that is being stopped must not report for the set that replaces it.
        if totals.generation != self.generation {
            return;
        }
        if phase == Phase::Synced {
            totals.missing_since = None;
        }
        if let Some(segment) = totals.segments.get_mut(self.number) {
            segment.forbidden.take_if(|_| phase == Phase::Synced);
            segment.phase = phase;
        }
        // Published under the lock, so that a concurrent call cannot publish an older result later.
        self.progress.enter(together(&totals.segments));
    }

    pub(crate) fn list_begun(&self) {
        self.progress.totals.lock().lists += 1;
    }

    /// Counts an opened watch, which ends earlier failures unless the server was stale.
    pub(crate) fn watch_opened(&self, is_stale: bool) {
        let mut totals = self.progress.totals.lock();
        totals.watches += 1;
        totals.last_received = Some(Instant::now());
        drop(totals);
        if !is_stale {
            self.recovered();
        }
    }

    /// Records that all earlier failures have ended, so that the next one is logged again.
    pub(crate) fn recovered(&self) {
        let mut totals = self.progress.totals.lock();
        totals.last_error = None;
        if let Some(part) = self.part(&mut totals) {
            part.interrupted = None;
        }
    }

    /// Records that the namespace of this reflector is forbidden, and uses the cache without it.
    ///
    /// A namespace that was read stays as it is.
    pub(crate) fn forbidden(&self, namespace: &Arc<str>) {
        let mut totals = self.progress.totals.lock();
        let is_new = self.part(&mut totals).is_some_and(|part| {
            let is_new = part.phase != Phase::Synced && part.forbidden.is_none();
            if is_new {
                part.forbidden = Some(Arc::clone(namespace));
            }
            is_new
        });
        if is_new {
            tracing::warn!(kind = %self.gvk(), %namespace, "the namespace is forbidden; the cache is used without it");
            self.progress.enter(together(&totals.segments));
        }
    }

    /// Records that a watch has ended, for any reason.
    pub(crate) fn watch_ended(&self) {
        let mut totals = self.progress.totals.lock();
        if let Some(part) = self.part(&mut totals)
            && part.phase == Phase::Synced
        {
            // Kept until another watch is open: failed attempts in between do not restart the time.
            part.interrupted.get_or_insert_with(Instant::now);
        }
    }

    /// Records why the watch ended, until another one is open.
    pub(crate) fn interrupted(&self, error: String) {
        tracing::debug!(kind = %self.gvk(), %error, "the watch ended and is opened again");
        let mut totals = self.progress.totals.lock();
        // Shown in the status, and not logged as a warning: the next watch is opened at once.
        (totals.last_error, totals.retry_in) = (Some(error), None);
        totals.is_logged = false;
    }

    /// Returns the state of this reflector, unless another set has replaced it.
    fn part<'a>(&self, totals: &'a mut Totals) -> Option<&'a mut Part> {
        let is_current = totals.generation == self.generation;
        let part = totals.segments.get_mut(self.number);
        part.filter(|_| is_current)
    }

    /// Counts a load: all objects were read.
    pub(crate) fn loaded(&self) {
        self.progress.totals.lock().loads += 1;
    }

    /// Counts a request that follows a list or a watch which ended for this reason.
    pub(crate) fn reconnects(&self, reason: Reconnect) {
        self.progress.totals.lock().reconnects[reason as usize] += 1;
    }

    /// Counts bytes of answers.
    pub(crate) fn received(&self, bytes: usize) {
        let received = &self.progress.received;
        received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Records that the server sent something.
    pub(crate) fn received_something(&self) {
        self.progress.totals.lock().last_received = Some(Instant::now());
    }

    /// Records the version of the store.
    pub(crate) fn reached(&self, version: &ResourceVersion) {
        let mut totals = self.progress.totals.lock();
        if totals.version.as_ref() != Some(version) {
            totals.version = Some(version.clone());
        }
    }

    pub(crate) fn failed(&self, trouble: &Trouble, retry_in: Option<Duration>) {
        self.progress.failed(trouble, retry_in);
    }

    /// Counts an object that cannot be read, and logs it.
    pub(crate) fn unreadable(&self, error: &dyn fmt::Display) {
        tracing::warn!(kind = %self.gvk(), %error, "an object cannot be read and is skipped");
        self.progress.totals.lock().unreadable += 1;
    }
}

impl Totals {
    /// Returns the namespaces that the cache is used without.
    fn forbidden(&self) -> Vec<Arc<str>> {
        let parts = self.segments.iter();
        parts.filter_map(|part| part.forbidden.clone()).collect()
    }

    /// Returns since when a reflector has had no watch; the earliest time of all.
    fn interrupted(&self) -> Option<Instant> {
        self.segments
            .iter()
            .filter_map(|part| part.interrupted)
            .min()
    }
}

/// Returns the phase of a kind, given the states of its reflectors.
fn together(segments: &[Part]) -> Phase {
    let allowed = segments.iter().filter(|part| part.forbidden.is_none());
    let phases = allowed.map(|part| &part.phase);
    // Without any readable namespace there is nothing to use.
    let is_all_forbidden = phases.clone().next().is_none() && !segments.is_empty();
    if is_all_forbidden {
        return Phase::Resolving;
    }
    if phases.clone().all(|phase| *phase == Phase::Synced) {
        return Phase::Synced;
    }
    let mut sums = (0, Some(0));
    let mut listing = false;
    for phase in phases {
        if let Phase::Listing { loaded, total } = phase {
            listing = true;
            sums.0 += loaded;
            sums.1 = sums
                .1
                .zip(*total)
                .map(|(sum, total): (usize, usize)| sum.saturating_add(total));
        // This reflector will list too, and its number of objects is unknown.
        } else if *phase != Phase::Synced {
            sums.1 = None;
        }
    }
    if listing {
        Phase::Listing {
            loaded: sums.0,
            total: sums.1,
        }
    } else {
        Phase::Resolving
    }
}

/// The time at which a reader first found the kind's cache unreadable.
///
/// It is reset when the cache has synced and when a run begins. All readers share it. If each waited for the whole
/// timeout, many keys that read a kind which cannot be listed would occupy all workers in turn.
#[derive(Debug, Default)]
struct UnreadableSince(Mutex<Option<Instant>>);

impl UnreadableSince {
    /// Returns when a reader first found the cache unreadable; now if it is readable.
    ///
    /// Whether it is readable is checked under the lock. Otherwise a reader that found the cache unreadable could store
    /// the time after the cache has synced and the time was reset, and the next outage would begin with an old time.
    fn get(&self, is_readable: impl FnOnce() -> bool) -> Instant {
        let mut since = self.0.lock();
        if is_readable() {
            return Instant::now();
        }
        *since.get_or_insert_with(Instant::now)
    }

    /// Resets the time; a phase that makes the cache readable was published before.
    fn reset(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;
    use tokio::time;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn readers_of_a_cache_that_is_not_filled_share_one_beginning() {
        let gvk = Gvk::new("", "v1", "Secret");
        let progress = Arc::new(Progress::new(gvk, Usage::new(Arc::new(Notify::new()))));
        let since = || progress.unreadable_since(|| progress.phase() == Phase::Synced);
        let begun = since();
        time::advance(SECOND).await;
        assert_eq!(since(), begun);
        // A run begins.
        progress.start();
        assert_eq!(since(), begun + SECOND);
        time::advance(SECOND).await;
        let segments = progress.begin(1);
        assert_eq!(since(), begun + SECOND, "the run is the same");
        // The cache has synced, and then another selection is to be read.
        segments[0].enter(Phase::Synced);
        assert_eq!(since(), begun + 2 * SECOND);
        time::advance(SECOND).await;
        progress.behind();
        assert_eq!(since(), begun + 3 * SECOND);
        time::advance(SECOND).await;
        assert_eq!(since(), begun + 3 * SECOND);
    }
}
