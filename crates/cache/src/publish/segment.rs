//! The progress of one reflector of a kind.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lariat_core::{Gvk, ResourceVersion};
use tokio::time::Instant;

use super::progress::{Progress, Trouble};
use super::status::{Phase, Reconnect};
use super::totals::{Part, Totals, together};

/// The progress of one reflector.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    progress: Arc<Progress>,
    number: usize,
    generation: u64,
}

impl Progress {
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
            self.reads_again(|since| {
                since.get_or_insert_with(Instant::now);
            });
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

    /// Counts an opened watch.
    pub(crate) fn watch_opened(&self) {
        let mut totals = self.progress.totals.lock();
        totals.watches += 1;
        totals.last_received = Some(Instant::now());
    }

    /// Records that the watch reports changes, or all objects were read, so that the next failure is logged again.
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
            // Kept until another watch reports changes: failed attempts in between do not restart the time.
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

    /// Counts a load: all objects were read, of a history of the API server.
    pub(crate) fn loaded(&self, history: u64) {
        let mut totals = self.progress.totals.lock();
        totals.loads += 1;
        totals.history = history;
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

    /// Records an earlier version from which the next run continues.
    pub(crate) fn resumes_from(&self, version: Option<ResourceVersion>) {
        self.progress.totals.lock().resume = version;
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
