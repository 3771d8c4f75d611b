//! The sentinel of one kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_cache::Written;
use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::options::Sentinel;
use super::suspect::{Ask, Circle, Write, since_progress};
use super::suspects::{Judgement, Suspects};
use crate::current::Caller;
use crate::payload::Payload;

/// Watches the keys of a kind that this process writes.
pub(crate) struct Watchman {
    gvk: Gvk,
    options: Sentinel,
    suspects: Mutex<Suspects>,
    /// Whether any key was ever written: most kinds are only read.
    has_suspects: AtomicBool,
}

impl Watchman {
    pub(crate) fn new(gvk: Gvk, options: Sentinel) -> Self {
        Self {
            gvk,
            options,
            suspects: Mutex::default(),
            has_suspects: AtomicBool::new(false),
        }
    }

    /// Takes in what a handler wrote.
    pub(crate) fn wrote(&self, written: &Written, caller: &Caller) {
        if !self.options.enabled {
            return;
        }
        // A write that the watch showed before its answer came was not published on this task.
        caller.wrote(&self.gvk, written.before.as_ref(), &written.after);
        let by = caller.name(&self.gvk);
        let write = write_of(written, caller, &by);
        self.has_suspects.store(true, Ordering::Relaxed);
        let mut suspects = self.suspects.lock();
        let found = suspects.wrote(&write, &self.options, Instant::now());
        drop(suspects);
        if let Some(circle) = found {
            self.warn(&circle);
        }
    }

    /// Takes in what a handler of this kind wrote to an object of another, whose changes bring the handler's key back.
    pub(crate) fn wrote_related(&self, of: &Gvk, written: &Written, caller: &Caller) {
        if !self.options.enabled {
            return;
        }
        let by = caller.name(&self.gvk);
        let write = write_of(written, caller, &by);
        self.has_suspects.store(true, Ordering::Relaxed);
        let mut suspects = self.suspects.lock();
        let place = (caller.key(), of);
        let found = suspects.wrote_related(place, &write, &self.options, Instant::now());
        drop(suspects);
        if let Some(circle) = found {
            self.warn(&circle);
        }
    }

    fn warn(&self, circle: &Circle) {
        tracing::warn!(
            kind = %self.gvk,
            key = %circle.key,
            pattern = %circle.pattern,
            handlers = circle.handlers.join(", "),
            fields = circle.fields.join(", "),
            manager = circle.manager,
            brought_by = circle.brought_by.as_deref(),
            "a key goes round in circles and is slowed down"
        );
    }

    /// Judges a run before it begins.
    pub(crate) fn judge(&self, key: &ObjectKey, payload: &Payload) -> Judgement {
        let (causes, step) = (&payload.causes, payload.step.as_ref());
        let chain = since_progress(causes.chain(), step);
        if !self.options.enabled {
            let (wait, step) = (None, None);
            return Judgement { chain, wait, step };
        }
        if !self.has_suspects.load(Ordering::Relaxed) && chain < self.options.runs {
            return Judgement::of(chain, step);
        }
        self.has_suspects.store(true, Ordering::Relaxed);
        let ask = Ask {
            causes,
            has_deletion: payload.has_deletion(),
            step,
        };
        let mut suspects = self.suspects.lock();
        let (judgement, found) = suspects.judge(key, &ask, &self.options, Instant::now());
        drop(suspects);
        if let Some(circle) = found {
            self.warn(&circle);
        }
        judgement
    }

    /// Returns how many keys are remembered, and how many at most.
    pub(crate) fn remembered(&self) -> (usize, usize) {
        self.suspects.lock().remembered()
    }

    pub(crate) fn status(&self) -> Vec<Circle> {
        self.suspects.lock().circles(Instant::now())
    }
}

fn write_of<'a>(written: &'a Written, caller: &'a Caller, by: &'a Arc<str>) -> Write<'a> {
    Write {
        before: written.before.as_ref(),
        after: &written.after,
        version: &written.version,
        by,
        chain: caller.leads_to(),
        step: caller.step.as_ref(),
    }
}
