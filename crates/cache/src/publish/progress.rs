//! The progress of a kind: what its reflectors report, and what its status shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lariat_core::{Gvk, ResourceVersion};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::status::{self, KindStatus, Phase};
use super::totals::{Totals, Unserved};
use super::user::Usage;
use crate::store::Store;

/// The progress of a kind: written by its reflectors, read by all of its users.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(super) gvk: Gvk,
    usage: Arc<Usage>,
    /// Locked after the totals.
    filling: watch::Sender<Filling>,
    pub(super) totals: Mutex<Totals>,
    /// The bytes of the bodies of answers.
    pub(super) received: AtomicU64,
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
    /// Whether the cache has ever synced.
    pub(crate) was_filled: bool,
    /// When a reader first found the cache unreadable, in this run and since it was last synced.
    ///
    /// All readers share it. If each waited for the whole timeout, many keys that read a kind which cannot be listed
    /// would occupy all workers in turn.
    unreadable_since: Option<Instant>,
}

impl Filling {
    fn enter(&mut self, phase: Phase, is_complete: bool) {
        let reads = match phase {
            Phase::Resolving | Phase::Listing { .. } => true,
            Phase::Synced => !is_complete && self.reading_since.is_some(),
            Phase::Idle | Phase::Missing | Phase::Unwatchable => false,
        };
        let since = reads.then(|| self.reading_since.unwrap_or_else(Instant::now));
        if phase == Phase::Synced {
            (self.was_filled, self.unreadable_since) = (true, None);
        }
        (self.phase, self.reading_since) = (phase, since);
    }
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

impl Progress {
    pub(crate) fn new(gvk: Gvk, usage: Arc<Usage>) -> Self {
        Self {
            gvk,
            usage,
            filling: watch::Sender::default(),
            totals: Mutex::default(),
            received: AtomicU64::new(0),
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.publish(phase, true);
    }

    /// Publishes a phase; `is_complete` is whether all reflectors have read all objects.
    pub(super) fn publish(&self, phase: Phase, is_complete: bool) {
        self.filling
            .send_modify(|filling| filling.enter(phase, is_complete));
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
        self.filling
            .send_modify(|filling| filling.unreadable_since = None);
        self.begin(0);
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
        // Measured anew even if a list without content is in progress: readers wait longer for the upgrade.
        self.reads_again(|since| *since = Some(Instant::now()));
    }

    /// Records that all objects are read again, if a run reads them at all.
    pub(super) fn reads_again(&self, begin: impl FnOnce(&mut Option<Instant>)) {
        self.filling.send_if_modified(|filling| {
            let reads = !matches!(filling.phase, Phase::Idle) && !filling.phase.is_unserved();
            if reads {
                begin(&mut filling.reading_since);
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
        self.filling.borrow().was_filled
    }

    /// Returns since when readers have found the cache unreadable in this run.
    ///
    /// Returns the present time if it is readable.
    pub(crate) fn unreadable_since(&self, is_readable: impl FnOnce(&Filling) -> bool) -> Instant {
        let mut since = Instant::now();
        self.filling.send_if_modified(|filling| {
            if !is_readable(filling) {
                since = *filling.unreadable_since.get_or_insert(since);
            }
            false
        });
        since
    }

    /// Returns the namespaces that the cache is used without, because they are forbidden.
    pub(crate) fn forbidden(&self) -> Vec<Arc<str>> {
        self.totals.lock().forbidden()
    }

    /// Returns the number of the history from which all objects were last read; zero if they never were.
    pub(crate) fn history(&self) -> u64 {
        self.totals.lock().history
    }

    /// Returns the version from which the next run continues.
    pub(crate) fn resume(&self) -> Option<ResourceVersion> {
        let totals = self.totals.lock();
        totals.resume.clone().or_else(|| totals.version.clone())
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
        let since = || progress.unreadable_since(|filling| filling.phase == Phase::Synced);
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

    #[tokio::test(start_paused = true)]
    async fn content_upgrade_has_its_own_start_time() {
        let gvk = Gvk::new("", "v1", "Secret");
        let progress = Arc::new(Progress::new(gvk, Usage::new(Arc::new(Notify::new()))));
        let reading_for = || {
            progress
                .filling()
                .borrow()
                .reading_since
                .map(|since| since.elapsed())
        };
        progress.start();
        progress.begin(1)[0].enter(Phase::Synced);
        assert_eq!(reading_for(), None);
        // Content is given up, and the list of metadata is slow.
        let segments = progress.begin(1);
        time::advance(60 * SECOND).await;
        assert_eq!(reading_for(), Some(60 * SECOND));
        progress.upgrade();
        assert_eq!(reading_for(), Some(Duration::ZERO));
        segments[0].enter(Phase::Synced);
        time::advance(SECOND).await;
        let segments = progress.begin(1);
        assert_eq!(
            reading_for(),
            Some(SECOND),
            "the list of metadata is not that of content"
        );
        segments[0].enter(Phase::Synced);
        assert_eq!(reading_for(), None);
    }
}
