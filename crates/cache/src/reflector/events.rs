//! The events of a reflector, which `docs/tracing.md` lists with their fields.

use std::time::Duration;

use lariat_core::{ObjectKey, ResourceVersion};
use tracing::Span;
use tracing::field::display;

use super::end::{End, NextStep, Stage};
use super::reflector::Reflector;

/// The target of the events.
const TARGET: &str = "lariat::reflector";

impl Reflector {
    /// Logs that a list, a watch or a check of the history begins.
    pub(super) fn log_began(&self, stage: Stage, since: Option<&ResourceVersion>) {
        let (kind, namespace) = (self.progress.gvk(), self.reading.namespace.as_deref());
        let since = since.map(display);
        tracing::trace!(target: TARGET, %kind, namespace, %stage, since, "began");
    }

    /// Logs an event of a watch; a bookmark has no key.
    pub(super) fn log_received(
        &self,
        event: &str,
        key: Option<&ObjectKey>,
        version: &ResourceVersion,
    ) {
        let (kind, key) = (self.progress.gvk(), key.map(display));
        tracing::trace!(target: TARGET, %kind, event, key, %version, "received");
    }

    /// Logs that all objects were read, and records their number in the current span.
    pub(super) fn log_loaded(&self, objects: usize, version: &ResourceVersion) {
        Span::current().record("objects", objects);
        let (kind, namespace) = (self.progress.gvk(), self.reading.namespace.as_deref());
        tracing::trace!(target: TARGET, %kind, namespace, objects, %version, "loaded");
    }

    /// Logs how a list, a watch or a check ended and what follows, and records the end in the current span.
    pub(super) fn log_ended(&self, stage: Stage, end: End, next: NextStep, after: Duration) {
        Span::current().record("end", display(end));
        let (kind, namespace) = (self.progress.gvk(), self.reading.namespace.as_deref());
        tracing::trace!(target: TARGET, %kind, namespace, %stage, %end, %next, ?after, "ended");
    }
}
