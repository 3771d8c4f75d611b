//! What happened: one sequence of events for the trace and for the checkers.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::check::Checks;
use crate::event::{Event, Moment};
use crate::oracle::Oracle;

/// How many lines of a trace are kept; the hash covers all.
const KEPT: usize = 20_000;

/// The one place every event of a run goes through, in the order in which the thread executes them.
#[derive(Clone)]
pub(crate) struct Recorder(Arc<Mutex<Inner>>);

struct Inner {
    now: Now,
    number: u64,
    trace: Trace,
    oracle: Oracle,
    checks: Checks,
    violations: Vec<Violation>,
    calls: u64,
    commits: u64,
}

/// Whose turn it is, and since when.
struct Now {
    actor: Arc<str>,
    at: Duration,
    /// The clock of the actor's runtime at `at`; none between turns, where no runtime's clock can be read.
    since: Option<Instant>,
}

/// What a checker found.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The checker.
    pub check: &'static str,
    /// When it was noticed, since the start of the run.
    pub at: Duration,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.check, Stamp(self.at), self.what)
    }
}

/// Writes virtual time as seconds with milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp(pub(crate) Duration);

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0.as_secs(), self.0.subsec_millis())
    }
}

/// The lines of a run, and a hash over all of them.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    lines: VecDeque<String>,
    count: u64,
    hash: u64,
}

impl Trace {
    fn push(&mut self, line: String) {
        // FNV-1a: the same on every machine and in every process.
        for byte in line.bytes().chain([b'\n']) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.count += 1;
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// Returns the last lines, 20,000 at most, each with its virtual time and its actor.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// Returns how many lines there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns a hash over all lines, those included that are not kept.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

impl Recorder {
    pub(crate) fn new(checks: Checks) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            now: Now {
                actor: Arc::from("driver"),
                at: Duration::ZERO,
                since: None,
            },
            number: 0,
            trace: Trace::default(),
            oracle: Oracle::default(),
            checks,
            violations: Vec::new(),
            calls: 0,
            commits: 0,
        })))
    }

    /// Begins a turn of an actor; called on its runtime.
    pub(crate) fn begin_turn(&self, actor: &Arc<str>, at: Duration) {
        self.0.lock().now = Now {
            actor: Arc::clone(actor),
            at,
            since: Some(Instant::now()),
        };
    }

    /// Ends a turn: until the next one, what happens is the driver's doing.
    pub(crate) fn end_turn(&self, at: Duration) {
        self.0.lock().now = Now {
            actor: Arc::from("driver"),
            at,
            since: None,
        };
    }

    /// Notes an event of whoever's turn it is.
    pub(crate) fn note(&self, event: Event) {
        let mut inner = self.0.lock();
        let inner = &mut *inner;
        inner.number += 1;
        inner.calls += u64::from(matches!(event, Event::Began { .. }));
        inner.commits += u64::from(matches!(event, Event::Committed(_)));
        let since = inner.now.since;
        let moment = Moment {
            number: inner.number,
            at: inner.now.at + since.map_or(Duration::ZERO, |since| since.elapsed()),
            actor: Arc::clone(&inner.now.actor),
        };
        inner.oracle.saw(&moment, &event);
        let found = inner.checks.saw(&inner.oracle, &moment, &event);
        if let Some(text) = event.text() {
            let line = format!(
                "{:>12} {:<10} {text}",
                Stamp(moment.at).to_string(),
                moment.actor
            );
            inner.trace.push(line);
        }
        for (check, what) in found {
            inner.trace.push(format!(
                "{:>12} VIOLATION {check}: {what}",
                Stamp(moment.at).to_string()
            ));
            inner.violations.push(Violation {
                check,
                at: moment.at,
                what,
            });
        }
    }

    /// Notes something in words.
    pub(crate) fn say(&self, text: impl Into<String>) {
        self.note(Event::Note(text.into()));
    }

    /// Reads what the server had and the checkers know.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&mut Oracle, &mut Checks) -> T) -> T {
        let mut inner = self.0.lock();
        let inner = &mut *inner;
        read(&mut inner.oracle, &mut inner.checks)
    }

    /// Adds what was found at rest.
    pub(crate) fn found(&self, check: &'static str, what: String) {
        let mut inner = self.0.lock();
        let at = inner.now.at;
        inner.trace.push(format!(
            "{:>12} VIOLATION {check}: {what}",
            Stamp(at).to_string()
        ));
        inner.violations.push(Violation { check, at, what });
    }

    pub(crate) fn has_failed(&self) -> bool {
        !self.0.lock().violations.is_empty()
    }

    /// Returns how many events there were, to see whether anything goes on.
    pub(crate) fn events(&self) -> u64 {
        self.0.lock().number
    }

    /// Returns how many calls and commits there were.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let inner = self.0.lock();
        (inner.calls, inner.commits)
    }

    /// Takes the trace and the violations out.
    pub(crate) fn finish(&self) -> (Trace, Vec<Violation>) {
        let mut inner = self.0.lock();
        (
            std::mem::take(&mut inner.trace),
            std::mem::take(&mut inner.violations),
        )
    }
}
