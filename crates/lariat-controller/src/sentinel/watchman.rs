//! The sentinel of one kind.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::Written;
use lariat_core::{Causes, Gvk, ObjectKey};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::options::Sentinel;
use super::suspect::{Circle, Write};
use super::suspects::Suspects;

/// Watches the keys of a kind that this process writes.
pub(crate) struct Watchman {
    gvk: Gvk,
    options: Sentinel,
    suspects: Mutex<Suspects>,
}

impl Watchman {
    pub(crate) fn new(gvk: Gvk, options: Sentinel) -> Self {
        Self {
            gvk,
            options,
            suspects: Mutex::default(),
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
            "a key goes round in circles and is slowed down"
        );
    }

    /// Returns how long a chain of runs led to a run, and how long it has to wait.
    pub(crate) fn judge(&self, key: &ObjectKey, causes: &Causes) -> (u32, Option<Duration>) {
        if !self.options.enabled {
            return (0, None);
        }
        let mut suspects = self.suspects.lock();
        suspects.judge(key, causes, &self.options, Instant::now())
    }

    pub(crate) fn status(&self) -> Vec<Circle> {
        self.suspects.lock().circles()
    }
}
