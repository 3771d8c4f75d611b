//! The hot loop detector of a kind: judges runs, and warns of hot loops.

use std::sync::atomic::{AtomicBool, Ordering};

use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::options::HotLoopOptions;
use super::suspect::{Ask, HotLoop, Write, since_progress};
use super::suspects::{Evaluation, Suspects};

/// Detects hot loops among the keys of a kind.
pub(crate) struct Detector {
    gvk: Gvk,
    options: HotLoopOptions,
    suspects: Mutex<Suspects>,
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

    /// Records a write of a handler.
    pub(crate) fn wrote(&self, write: &Write<'_>) {
        if !self.options.enabled {
            return;
        }
        if let Some(step) = write.step {
            // A write is usually recorded when it is published on this task. If the watch was faster than the response,
            // the write was published on another task, and is recorded here.
            step.wrote(&self.gvk, write.before, write.after);
        }
        self.take_in(|suspects| suspects.wrote(write, &self.options, Instant::now()));
    }

    /// Records a handler's write to a related object that enqueues the handler's key.
    pub(crate) fn wrote_related(&self, key: &ObjectKey, of: &Gvk, write: &Write<'_>) {
        if self.options.enabled {
            let options = &self.options;
            self.take_in(|suspects| {
                suspects.wrote_related(key, of, write, options, Instant::now())
            });
        }
    }

    /// Records a write under the lock, and warns after unlocking.
    fn take_in(&self, wrote: impl FnOnce(&mut Suspects) -> Option<HotLoop>) {
        self.has_suspects.store(true, Ordering::Relaxed);
        let found = wrote(&mut self.suspects.lock());
        if let Some(hot_loop) = found {
            self.warn(&hot_loop);
        }
    }

    fn warn(&self, hot_loop: &HotLoop) {
        tracing::warn!(
            kind = %self.gvk,
            key = %hot_loop.key,
            pattern = %hot_loop.pattern,
            handlers = hot_loop.handlers.join(", "),
            fields = hot_loop.fields.join(", "),
            manager = hot_loop.manager,
            triggered_by = hot_loop.triggered_by.as_deref(),
            "key is in a hot loop, delaying its runs; {}",
            hot_loop.pattern.advice()
        );
    }

    /// Judges a run before it begins.
    pub(crate) fn judge(&self, key: &ObjectKey, ask: &Ask<'_>) -> Evaluation {
        let Ask { causes, step, .. } = *ask;
        let chain = since_progress(causes.chain(), step);
        if !self.options.enabled {
            let (wait, step) = (None, None);
            return Evaluation { chain, wait, step };
        }
        // The usual case: a kind that nothing writes, and a run that no long chain led to.
        if !self.has_suspects.load(Ordering::Relaxed) && chain < self.options.runs {
            return Evaluation::of(chain, step);
        }
        self.has_suspects.store(true, Ordering::Relaxed);
        let mut suspects = self.suspects.lock();
        let (evaluation, found) = suspects.judge(key, ask, &self.options, Instant::now());
        drop(suspects);
        if let Some(hot_loop) = found {
            self.warn(&hot_loop);
        }
        evaluation
    }

    /// Returns how many keys are remembered, and their bound.
    pub(crate) fn table_sizes(&self) -> (usize, usize) {
        self.suspects.lock().table_sizes()
    }

    /// Returns the keys in hot loops.
    pub(crate) fn status(&self) -> Vec<HotLoop> {
        self.suspects.lock().hot_loops(Instant::now())
    }
}
