//! Captures log lines as text.

use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, Interest};
use tracing::{Event, Metadata, Subscriber};

/// Collects the log lines of this thread, until it is dropped.
pub struct Logs {
    lines: Arc<Mutex<String>>,
    _guard: DefaultGuard,
}

struct Collector {
    lines: Arc<Mutex<String>>,
    /// Events that contain it panic.
    panics_at: Option<&'static str>,
}

struct Line<'a>(&'a mut String);

impl Logs {
    pub fn begin() -> Self {
        Self::with(None)
    }

    /// Begins a log whose subscriber panics at events with a text, if one is given.
    pub fn with(panics_at: Option<&'static str>) -> Self {
        let lines = Arc::<Mutex<String>>::default();
        let collector = Collector {
            lines: Arc::clone(&lines),
            panics_at,
        };
        let guard = tracing::subscriber::set_default(collector);
        Self {
            lines,
            _guard: guard,
        }
    }

    pub fn text(&self) -> String {
        self.lines.lock().clone()
    }
}

impl Subscriber for Collector {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // Other threads have other collectors.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("lariat")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut lines = self.lines.lock();
        let _ = write!(lines, "span {}", span.metadata().name());
        span.record(&mut Line(&mut lines));
        lines.push('\n');
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut Line(&mut line));
        if let Some(text) = self.panics_at {
            assert!(!line.contains(text), "as the test wants");
        }
        let mut lines = self.lines.lock();
        lines.push_str(&line);
        lines.push('\n');
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}
