//! The sentinel of one kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_cache::Written;
use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::options::Sentinel;
use super::suspect::{Ask, Circle, Write};
use super::suspects::{Judgement, Suspects};
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

    /// Takes in what a handler wrote in a run with a chain behind it.
    pub(crate) fn wrote(&self, written: &Written, by: &Arc<str>, chain: u32) {
        if !self.options.enabled {
            return;
        }
        let write = Write {
            before: written.before.as_ref(),
            after: &written.after,
            version: &written.version,
            by,
            chain,
        };
        self.has_suspects.store(true, Ordering::Relaxed);
        let mut suspects = self.suspects.lock();
        let found = suspects.wrote(&write, &self.options, Instant::now());
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
        let (causes, chain) = (&payload.causes, payload.causes.chain());
        let is_quiet = !self.has_suspects.load(Ordering::Relaxed) && chain < self.options.runs;
        if !self.options.enabled || is_quiet {
            return Judgement { chain, wait: None };
        }
        self.has_suspects.store(true, Ordering::Relaxed);
        let ask = Ask {
            causes,
            has_deletion: payload.has_deletion(),
        };
        let mut suspects = self.suspects.lock();
        let (judgement, found) = suspects.judge(key, &ask, &self.options, Instant::now());
        drop(suspects);
        if let Some(circle) = found {
            self.warn(&circle);
        }
        judgement
    }

    pub(crate) fn status(&self) -> Vec<Circle> {
        self.suspects.lock().circles(Instant::now())
    }
}
