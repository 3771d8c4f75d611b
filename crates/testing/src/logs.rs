//! Captures log lines as text.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, Interest};
use tracing::{Event, Level, Metadata, Subscriber};

/// The log lines of this thread, until it is dropped.
///
/// A test with paused time runs all its tasks on its thread. A line has the level and the fields; that of a span begins with `span` and
/// its name.
#[derive(Debug)]
#[must_use = "the lines are collected until it is dropped"]
pub struct Logs {
    lines: Lines,
    _guard: DefaultGuard,
}

type Lines = Arc<Mutex<Vec<String>>>;

/// Which lines are collected.
#[derive(Debug)]
enum Wanted {
    /// Spans and events of Lariat.
    All,
    /// Events of any crate that are as important as this level.
    Events(Level),
}

#[derive(Debug)]
struct Collector {
    lines: Lines,
    wanted: Wanted,
    panics_at: Option<&'static str>,
}

impl Logs {
    /// Collects the spans and events of Lariat.
    pub fn begin() -> Self {
        Self::with(None)
    }

    /// Collects as [`begin`](Self::begin) does, and panics at some events.
    ///
    /// Those are the events that contain the text, if one is given.
    pub fn with(panics_at: Option<&'static str>) -> Self {
        Self::collect(Wanted::All, panics_at)
    }

    /// Collects warnings and errors.
    pub fn warnings() -> Self {
        Self::up_to(Level::WARN)
    }

    /// Collects events that are as important as a level.
    pub fn up_to(level: Level) -> Self {
        Self::collect(Wanted::Events(level), None)
    }

    fn collect(wanted: Wanted, panics_at: Option<&'static str>) -> Self {
        let lines = Lines::default();
        let collector = Collector {
            lines: Arc::clone(&lines),
            wanted,
            panics_at,
        };
        Self {
            lines,
            _guard: tracing::subscriber::set_default(collector),
        }
    }

    /// Returns the lines so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    /// Returns the lines so far as one text.
    #[must_use]
    pub fn text(&self) -> String {
        let lines = self.lines.lock();
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

impl Subscriber for Collector {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // Other threads have other collectors.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        match self.wanted {
            Wanted::All => metadata.target().starts_with("lariat"),
            Wanted::Events(level) => metadata.is_event() && *metadata.level() <= level,
        }
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line(format!("span {}", span.metadata().name()));
        span.record(&mut line);
        self.lines.lock().push(line.0);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        if let Some(text) = self.panics_at {
            assert!(!line.0.contains(text), "as the test wants");
        }
        self.lines.lock().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A line, to which fields are added.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = write!(self.0, " {field}={value:?}");
        written.expect("a string takes everything");
    }
}
