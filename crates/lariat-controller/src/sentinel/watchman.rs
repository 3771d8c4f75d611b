//! The sentinel of one kind.

use std::sync::atomic::{AtomicBool, Ordering};

use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::options::Sentinel;
use super::suspect::{Ask, HotLoop, Write, since_progress};
use super::suspects::{Judgement, Suspects};

/// Detects hot loops among the keys of a kind.
pub(crate) struct Watchman {
    gvk: Gvk,
    options: Sentinel,
    suspects: Mutex<Suspects>,
    /// Whether there may be suspects. Spares the lock, for most kinds are only read.
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

    /// Records a write of a handler.
    pub(crate) fn wrote(&self, write: &Write<'_>) {
        if !self.options.enabled {
            return;
        }
        if let Some(step) = write.step {
            // If the watch published the write before its response arrived, it was not published on this task, so the
            // step does not know it yet.
            step.wrote(&self.gvk, write.before, write.after);
        }
        self.take_in(|suspects| suspects.wrote(write, &self.options, Instant::now()));
    }

    /// Records a handler's write to an object of another kind whose changes enqueue the handler's key.
    pub(crate) fn wrote_related(&self, key: &ObjectKey, of: &Gvk, write: &Write<'_>) {
        if self.options.enabled {
            let options = &self.options;
            self.take_in(|suspects| {
                suspects.wrote_related(key, of, write, options, Instant::now())
            });
        }
    }

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
            brought_by = hot_loop.brought_by.as_deref(),
            "a key is in a hot loop and is slowed down"
        );
    }

    /// Judges a run before it begins.
    pub(crate) fn judge(&self, key: &ObjectKey, ask: &Ask<'_>) -> Judgement {
        let Ask { causes, step, .. } = *ask;
        let chain = since_progress(causes.chain(), step);
        if !self.options.enabled {
            let (wait, step) = (None, None);
            return Judgement { chain, wait, step };
        }
        if !self.has_suspects.load(Ordering::Relaxed) && chain < self.options.runs {
            return Judgement::of(chain, step);
        }
        self.has_suspects.store(true, Ordering::Relaxed);
        let mut suspects = self.suspects.lock();
        let (judgement, found) = suspects.judge(key, ask, &self.options, Instant::now());
        drop(suspects);
        if let Some(hot_loop) = found {
            self.warn(&hot_loop);
        }
        judgement
    }

    /// Returns how many keys are remembered, and their bound.
    pub(crate) fn remembered(&self) -> (usize, usize) {
        self.suspects.lock().remembered()
    }

    pub(crate) fn status(&self) -> Vec<HotLoop> {
        self.suspects.lock().hot_loops(Instant::now())
    }
}
