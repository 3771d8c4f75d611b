//! Records the events of a run, in one sequence, for the trace and for its observer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::event::{Event, Moment};
use crate::observer::Observer;
use crate::rate::Rate;
use crate::stamp::Stamp;
use crate::trace::Trace;

/// The recorder that every event of a run passes, in the order of execution.
#[derive(Clone)]
pub(crate) struct Recorder(Arc<Mutex<Inner>>);

struct Inner {
    now: Now,
    driver: Arc<str>,
    number: u64,
    /// Counts what was not only said: log lines must not change how a run goes on.
    events: u64,
    trace: Trace,
    observer: Box<dyn Observer>,
    violations: Vec<Violation>,
    /// The events of a machine that ends, until all of it has.
    ending: Option<Vec<Event>>,
    calls: u64,
    commits: u64,
}

/// Whose turn it is, and since when.
struct Now {
    actor: Arc<str>,
    at: Duration,
    /// The clock of the actor's runtime at `at`; `None` between turns.
    ///
    /// No runtime's clock can be read then.
    since: Option<Instant>,
    /// The rate of the clock of the actor's runtime.
    rate: Rate,
}

/// A violated invariant, as a checker reported it.
///
/// ```
/// use lariat::sim::{Chaos, Simulation};
/// use std::time::Duration;
///
/// let failure = Simulation::new(7)
///     .chaos(Chaos::default().duration(Duration::from_secs(1)))
///     .program("broken", |_| async { Err("no configuration".into()) })
///     .shrinks(false)
///     .run()
///     .unwrap_err();
/// let violation = &failure.violations()[0];
/// assert!(violation.what.contains("no configuration"));
/// // It displays as the checker, the virtual time and the description.
/// assert!(violation.to_string().starts_with(violation.check));
/// ```
#[derive(Debug, Clone)]
pub struct Violation {
    /// The name of the checker.
    pub check: &'static str,
    /// The time of its detection, in virtual time since the start of the run.
    pub at: Duration,
    /// A description of what is wrong.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.check, Stamp(self.at), self.what)
    }
}

impl Recorder {
    pub(crate) fn new(observer: Box<dyn Observer>) -> Self {
        let driver: Arc<str> = Arc::from("driver");
        Self(Arc::new(Mutex::new(Inner {
            now: Now {
                actor: Arc::clone(&driver),
                at: Duration::ZERO,
                since: None,
                rate: Rate::TRUE,
            },
            driver,
            number: 0,
            events: 0,
            trace: Trace::default(),
            observer,
            violations: Vec::new(),
            ending: None,
            calls: 0,
            commits: 0,
        })))
    }

    /// Begins a turn of an actor; called on its runtime.
    pub(crate) fn begin_turn(&self, actor: &Arc<str>, at: Duration, rate: Rate) {
        self.0.lock().now = Now {
            actor: Arc::clone(actor),
            at,
            since: Some(Instant::now()),
            rate,
        };
    }

    /// Ends a turn: events until the next one are the driver's.
    ///
    /// `polls` stands for the order of the tasks that ran.
    pub(crate) fn end_turn(&self, at: Duration, polls: u64) {
        let mut inner = self.0.lock();
        inner.trace.fold(polls);
        inner.now = Now {
            actor: Arc::clone(&inner.driver),
            at,
            // The driver belongs to no runtime, so it has no clock: its events get the time at which the last turn
            // ended.
            since: None,
            rate: Rate::TRUE,
        };
    }

    /// Notes an event of the actor that has the turn.
    pub(crate) fn note(&self, event: Event) {
        let mut guard = self.0.lock();
        let inner = &mut *guard;
        // Events of an ending runtime are held back until all have come, to be sorted; see `end`.
        if let Some(ending) = &mut inner.ending {
            // Neither counted nor checked until it is noted again.
            return ending.push(event);
        }
        inner.number += 1;
        // Log lines are left out: this number decides the length of turns, and a run must be the same with and without
        // logs.
        inner.events += u64::from(!matches!(event, Event::Log(_)));
        inner.calls += u64::from(matches!(event, Event::Began { .. }));
        inner.commits += u64::from(matches!(event, Event::Committed(_)));
        let (since, rate) = (inner.now.since, inner.now.rate);
        // `Instant` is tokio's, so this is the virtual time since the turn began.
        let elapsed = since.map_or(Duration::ZERO, |since| rate.of_run(since.elapsed()));
        let moment = Moment {
            number: inner.number,
            at: inner.now.at + elapsed,
            actor: Arc::clone(&inner.now.actor),
        };
        let found = inner.observer.saw(&moment, &event);
        if let Some(text) = event.text() {
            let line = format!(
                "{:>12} {:<10} {text}",
                Stamp(moment.at).to_string(),
                moment.actor
            );
            inner.trace.push(line);
        }
        for (check, what) in found {
            inner.found(check, moment.at, what);
        }
    }

    /// Runs the end of something, and records its events in the order of their lines.
    ///
    /// A runtime drops its tasks by their ids, which all runs of the operating system's process count together.
    pub(crate) fn end(&self, end: impl FnOnce()) {
        self.0.lock().ending = Some(Vec::new());
        end();
        let mut ended = self.0.lock().ending.take().unwrap_or_default();
        // By their text, since everything else about their order depends on ids that differ from run to run.
        ended.sort_by_cached_key(Event::text);
        for event in ended {
            self.note(event);
        }
    }

    /// Notes something in words.
    pub(crate) fn say(&self, text: impl Into<String>) {
        self.note(Event::Note(text.into()));
    }

    /// Shows something between two events to the observer.
    pub(crate) fn show<T>(&self, show: impl FnOnce(&mut dyn Observer) -> T) -> T {
        show(&mut *self.0.lock().observer)
    }

    /// Adds a violation that was found at rest.
    pub(crate) fn found(&self, check: &'static str, what: String) {
        let mut inner = self.0.lock();
        let at = inner.now.at;
        inner.found(check, at, what);
    }

    pub(crate) fn has_failed(&self) -> bool {
        !self.0.lock().violations.is_empty()
    }

    /// Returns the number of events without log lines, as a measure of progress.
    pub(crate) fn events(&self) -> u64 {
        self.0.lock().events
    }

    /// Returns the numbers of calls and commits.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let inner = self.0.lock();
        (inner.calls, inner.commits)
    }

    /// Returns the trace and the violations.
    pub(crate) fn finish(&self) -> (Trace, Vec<Violation>) {
        let mut inner = self.0.lock();
        (
            std::mem::take(&mut inner.trace),
            std::mem::take(&mut inner.violations),
        )
    }
}

impl Inner {
    fn found(&mut self, check: &'static str, at: Duration, what: String) {
        let stamp = Stamp(at).to_string();
        let line = format!(
            "{stamp:>12} {:<10} VIOLATION {check}: {what}",
            self.now.actor
        );
        self.trace.push(line);
        self.violations.push(Violation { check, at, what });
    }
}
