//! Who has seen what: how a run knows that every handler was called for every object.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow};
use lariat_core::ResourceVersion;
use tokio::sync::Notify;

use super::latencies::Latencies;
use super::seen::Seen;
use crate::meter;

/// Counts, for each handler, the pods it has seen in a state that is new enough.
///
/// A state goes by its number: its version, or when it was written where that is what handlers look at.
#[derive(Debug)]
pub(crate) struct Tally {
    handlers: Vec<Seen>,
    /// States with smaller numbers are too old to count.
    first: AtomicU64,
    /// How many more first sights there have to be.
    missing: AtomicUsize,
    done: Notify,
    /// Why nothing more will be seen.
    failure: OnceLock<String>,
    /// There since it matters how long states are under way.
    latencies: OnceLock<Latencies>,
}

impl Tally {
    /// Expects one call per handler and pod; `numbered` if pods' names have numbers.
    pub(crate) fn new(pods: usize, handlers: usize, numbered: bool) -> Arc<Self> {
        Arc::new(Self {
            handlers: (0..handlers).map(|_| Seen::new(pods, numbered)).collect(),
            first: AtomicU64::new(0),
            missing: AtomicUsize::new(pods * handlers),
            done: Notify::new(),
            failure: OnceLock::new(),
            latencies: OnceLock::new(),
        })
    }

    /// Resets, and expects a number of pods per handler in states after a version.
    pub(crate) fn begin(&self, floor: u64, pods: usize) {
        self.restart(floor + 1, pods);
    }

    /// Resets, and expects a number of pods per handler in states written from now on.
    pub(crate) fn begin_now(&self, pods: usize) {
        self.restart(meter::micros(), pods);
    }

    /// Does the same, and notes how long these states were under way to each handler.
    pub(crate) fn begin_probes(&self, pods: usize) {
        let expected = pods * self.handlers.len();
        self.latencies.get_or_init(|| Latencies::new(expected));
        self.begin_now(pods);
    }

    fn restart(&self, first: u64, expected: usize) {
        self.handlers.iter().for_each(Seen::forget);
        self.missing
            .store(expected * self.handlers.len(), Ordering::Relaxed);
        // Nothing is called meanwhile: the server holds all changes back until after this.
        self.first.store(first, Ordering::SeqCst);
    }

    /// Notes that a handler was called for a pod in the state of a number.
    pub(crate) fn saw(&self, handler: usize, namespace: Option<&str>, name: &str, state: u64) {
        let latencies = self.latencies.get();
        // Read first, before anything of the benchmark adds to the time.
        let now = latencies.map_or(0, |_| meter::micros());
        let seen = &self.handlers[handler];
        seen.called(1);
        if state < self.first.load(Ordering::Relaxed) || !seen.note(namespace, name) {
            return;
        }
        if let Some(latencies) = latencies {
            latencies.note(state, now);
        }
        self.is_there(1);
    }

    /// Notes that lines have arrived, each of which counts, whatever it is about.
    pub(crate) fn arrived(&self, lines: usize) {
        self.handlers[0].called(lines as u64);
        self.is_there(lines);
    }

    /// Records when the line of a state arrived; older states do not count.
    pub(crate) fn arrived_from(&self, state: u64, now: u64) {
        self.handlers[0].called(1);
        if state < self.first.load(Ordering::Relaxed) {
            return;
        }
        if let Some(latencies) = self.latencies.get() {
            latencies.note(state, now);
        }
        self.is_there(1);
    }

    fn is_there(&self, sights: usize) {
        // What was noted has to be there for who waits until all is done.
        let before = self.missing.fetch_sub(sights, Ordering::AcqRel);
        // Later sights make the count wrap around, which is harmless: only the step to zero notifies.
        if before <= sights && before > 0 {
            self.done.notify_one();
        }
    }

    /// Notes that nothing more will be seen.
    pub(crate) fn fail(&self, reason: &anyhow::Error) {
        // The first reason counts.
        let _ = self.failure.set(format!("{reason:#}"));
        self.done.notify_one();
    }

    /// Waits until everything expected was seen.
    ///
    /// # Errors
    ///
    /// Nothing more will be seen.
    pub(crate) async fn all_seen(&self) -> Result<()> {
        // A permit is kept if it came before this is awaited.
        self.done.notified().await;
        match self.failure.get() {
            Some(reason) => Err(anyhow!("{reason}")),
            None => Ok(()),
        }
    }

    /// Returns how often handlers were called, all together.
    pub(crate) fn runs(&self) -> u64 {
        self.handlers.iter().map(Seen::runs).sum()
    }

    /// Returns how long each probe was under way to each handler, in microseconds.
    pub(crate) fn latencies(&self) -> Vec<f64> {
        let latencies = self.latencies.get();
        latencies.map(Latencies::micros).unwrap_or_default()
    }

    pub(crate) fn handlers(&self) -> usize {
        self.handlers.len()
    }
}

/// Returns the number of a version, without a text of it.
pub(crate) fn number(version: &ResourceVersion) -> u64 {
    struct Digits(u64);
    impl Write for Digits {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let digits = text
                .bytes()
                .map(|digit| u64::from(digit.wrapping_sub(b'0')));
            self.0 = digits.fold(self.0, |number, digit| {
                number.wrapping_mul(10).wrapping_add(digit)
            });
            Ok(())
        }
    }
    let mut digits = Digits(0);
    // It cannot fail, for nothing above does.
    let _ = write!(digits, "{version}");
    digits.0
}
