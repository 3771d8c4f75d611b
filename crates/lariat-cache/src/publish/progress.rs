//! The progress of a kind: what its reflectors report, and what its status shows.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lariat_core::{Gvk, ResourceVersion};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::status::{self, Blind, KindStatus, Phase, Reconnect};
use super::unreadable::UnreadableSince;
use super::user::Usage;
use crate::store::Store;

/// The progress of a kind: written by its reflectors, read by all of its users.
#[derive(Debug)]
pub(crate) struct Progress {
    gvk: Gvk,
    usage: Arc<Usage>,
    filling: watch::Sender<Filling>,
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

/// How far a cache is filled: the answers that its readers wait for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filling {
    /// Whether the objects and their metadata are current.
    pub(crate) phase: Phase,
    /// Since when all objects are being read.
    ///
    /// A synced cache is read again if its content is needed, or not needed any more; its metadata stays current.
    pub(crate) reading_since: Option<Instant>,
}

impl Filling {
    fn enter(&mut self, phase: Phase, is_complete: bool) {
        let reads = match phase {
            Phase::Resolving | Phase::Listing { .. } => true,
            Phase::Synced => !is_complete && self.reading_since.is_some(),
            Phase::Idle | Phase::Missing | Phase::Unwatchable => false,
        };
        let since = reads.then(|| self.reading_since.unwrap_or_else(Instant::now));
        (self.phase, self.reading_since) = (phase, since);
    }
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
    /// Since when the kind has not been served, until it has been read again.
    unserved: Option<Unserved>,
}

/// The absence of a kind.
#[derive(Debug)]
struct Unserved {
    since: Instant,
    /// The versions in which it is served.
    served: Vec<Gvk>,
}

/// The state of one reflector.
#[derive(Debug, Clone, Default)]
struct Part {
    phase: Phase,
    /// Whether it has read all objects.
    is_loaded: bool,
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
            filling: watch::Sender::default(),
            was_filled: AtomicBool::new(false),
            unreadable: UnreadableSince::default(),
            totals: Mutex::default(),
            received: AtomicU64::new(0),
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.publish(phase, true);
    }

    /// Publishes a phase; `is_complete` is whether all reflectors have read all objects.
    fn publish(&self, phase: Phase, is_complete: bool) {
        let is_filled = phase == Phase::Synced;
        if is_filled {
            self.was_filled.store(true, Ordering::Relaxed);
        }
        // Published before the time is reset: a reader in between sees the synced phase, and does not store a time.
        self.filling
            .send_modify(|filling| filling.enter(phase, is_complete));
        if is_filled {
            self.unreadable.reset();
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.filling.borrow().phase.clone()
    }

    pub(crate) fn filling(&self) -> watch::Receiver<Filling> {
        self.filling.subscribe()
    }

    /// Returns whether the cache has synced, and has had a watch within the last seconds.
    pub(crate) fn is_current(&self) -> bool {
        let interrupted = self.totals.lock().interrupted();
        self.phase() == Phase::Synced && !status::is_stale(interrupted.map(|since| since.elapsed()))
    }

    /// Begins a run, and resets how long the kind was missing or not synced.
    pub(crate) fn start(self: &Arc<Self>) {
        self.totals.lock().unserved = None;
        self.unreadable.reset();
        self.begin(0);
    }

    /// Begins with a new set of reflectors; the previous ones have ended.
    ///
    /// A synced cache stays synced: the new set reads the same objects, in another form. So it has the same namespaces,
    /// and stays without those that are forbidden.
    pub(crate) fn begin(self: &Arc<Self>, segments: usize) -> Vec<Segment> {
        let mut totals = self.totals.lock();
        let stays = segments > 0 && self.phase() == Phase::Synced;
        let phase = if stays {
            Phase::Synced
        } else {
            Phase::Resolving
        };
        let part = Part {
            phase: phase.clone(),
            is_loaded: false,
            interrupted: stays.then(|| totals.interrupted().unwrap_or_else(Instant::now)),
            forbidden: None,
        };
        let mut parts = vec![part; segments];
        if stays {
            let before = totals.segments.iter();
            parts
                .iter_mut()
                .zip(before)
                .for_each(|(part, before)| part.keep_out(before));
        }
        totals.segments = parts;
        totals.generation += 1;
        let generation = totals.generation;
        drop(totals);
        if stays {
            self.reads_again();
        } else {
            self.enter(phase);
        }
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
        self.filling.send_if_modified(|filling| {
            let was_filled = matches!(filling.phase, Phase::Synced | Phase::Listing { .. });
            if was_filled {
                filling.enter(Phase::Resolving, false);
            }
            was_filled
        });
    }

    /// Records that content is to be read; the metadata of a synced cache stays current.
    pub(crate) fn upgrade(&self) {
        let mut totals = self.totals.lock();
        // As in `behind`: the end of a list without content is not that of the upgrade.
        totals.generation += 1;
        self.reads_again();
    }

    /// Records that all objects are read again, if a run reads them at all.
    fn reads_again(&self) {
        self.filling.send_if_modified(|filling| {
            let reads = !matches!(filling.phase, Phase::Idle) && !filling.phase.is_unserved();
            if reads {
                filling.reading_since.get_or_insert_with(Instant::now);
            }
            reads
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

    /// Records that the kind cannot be read, and in which versions it is served.
    pub(crate) fn unserved(&self, phase: Phase, served: Vec<Gvk>) {
        let mut totals = self.totals.lock();
        let since = totals.unserved.as_ref().map(|unserved| unserved.since);
        totals.unserved = Some(Unserved {
            since: since.unwrap_or_else(Instant::now),
            served,
        });
        drop(totals);
        self.enter(phase);
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

    pub(crate) fn status(&self, store: &Store, holds_content: bool) -> KindStatus {
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
            holds_content,
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
            blind: totals.blind().filter(|_| objects > 0 || self.was_filled()),
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
        if let Some(segment) = totals.segments.get_mut(self.number) {
            segment.forbidden.take_if(|_| phase == Phase::Synced);
            segment.is_loaded |= phase == Phase::Synced;
            segment.phase = phase;
        }
        let (phase, is_complete) = (together(&totals.segments), totals.is_complete());
        if phase == Phase::Synced {
            totals.unserved = None;
        }
        // Published under the lock, so that a concurrent call cannot publish an older result later.
        self.progress.publish(phase, is_complete);
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
    /// A namespace that was read stays as it is. One that was read in another form does not delay the others.
    pub(crate) fn forbidden(&self, namespace: &Arc<str>) {
        let mut totals = self.progress.totals.lock();
        let is_new = self.part(&mut totals).is_some_and(|part| {
            let is_new = !part.is_loaded && part.forbidden.is_none();
            if is_new {
                part.forbidden = Some(Arc::clone(namespace));
            }
            is_new
        });
        if is_new {
            tracing::warn!(kind = %self.gvk(), %namespace, "the namespace is forbidden; the cache is used without it");
            let is_complete = totals.is_complete();
            self.progress
                .publish(together(&totals.segments), is_complete);
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

    /// Returns whether all reflectors have read all objects, but for forbidden namespaces.
    fn is_complete(&self) -> bool {
        let parts = &self.segments;
        parts.iter().any(|part| part.is_loaded)
            && parts
                .iter()
                .all(|part| part.is_loaded || part.forbidden.is_some())
    }

    fn blind(&self) -> Option<Blind> {
        let unserved = self.unserved.as_ref()?;
        Some(Blind {
            lasts: unserved.since.elapsed(),
            served: unserved.served.clone(),
        })
    }

    /// Returns since when a reflector has had no watch; the earliest time of all.
    fn interrupted(&self) -> Option<Instant> {
        self.segments
            .iter()
            .filter_map(|part| part.interrupted)
            .min()
    }
}

impl Part {
    /// Stays without the namespace if it was forbidden before.
    fn keep_out(&mut self, before: &Self) {
        self.forbidden.clone_from(&before.forbidden);
        if self.forbidden.is_some() && before.phase != Phase::Synced {
            (self.phase, self.interrupted) = (Phase::Resolving, None);
        }
    }
}

/// Returns the phase of a kind, given the states of its reflectors.
fn together(segments: &[Part]) -> Phase {
    // A forbidden namespace that was read before, in another form, is used as it is.
    let is_used = |part: &&Part| part.forbidden.is_none() || part.phase == Phase::Synced;
    let allowed = segments.iter().filter(is_used);
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
