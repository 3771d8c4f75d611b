//! What is written to the log.

use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// Warnings and errors of this thread, on which a test with paused time runs all its tasks.
#[derive(Clone)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>, Level);

impl Warnings {
    /// Collects them until the guard is dropped.
    pub(crate) fn collect() -> (Self, DefaultGuard) {
        Self::collect_from(Level::WARN)
    }

    /// Collects also what is less important.
    pub(crate) fn collect_from(level: Level) -> (Self, DefaultGuard) {
        let warnings = Self(Arc::default(), level);
        let guard = tracing::subscriber::set_default(warnings.clone());
        (warnings, guard)
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!("{field}={value:?} ");
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.1
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
