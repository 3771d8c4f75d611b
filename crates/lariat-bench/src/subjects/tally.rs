//! Who has seen what: how a run knows that every handler was called for every object.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use lariat_core::ResourceVersion;
use tokio::sync::Notify;

use super::latencies::Latencies;
use crate::{meter, pods};

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
    /// There since it matters how long states are under way.
    latencies: OnceLock<Latencies>,
}

#[derive(Debug)]
struct Seen {
    /// A bit for each pod.
    pods: Vec<AtomicU64>,
    runs: AtomicU64,
}

impl Tally {
    /// Expects every handler to see every pod once.
    pub(crate) fn new(pods: usize, handlers: usize) -> Arc<Self> {
        let seen = || Seen {
            pods: (0..pods.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            runs: AtomicU64::new(0),
        };
        Arc::new(Self {
            handlers: (0..handlers).map(|_| seen()).collect(),
            first: AtomicU64::new(0),
            missing: AtomicUsize::new(pods * handlers),
            done: Notify::new(),
            latencies: OnceLock::new(),
        })
    }

    /// Forgets what was seen, and expects every handler to see so many pods in states after a version.
    pub(crate) fn begin(&self, floor: u64, pods: usize) {
        self.restart(floor + 1, pods);
    }

    /// Forgets what was seen, and expects every handler to see so many pods in states written from now on.
    ///
    /// It is noted how long these were under way to each handler.
    pub(crate) fn begin_probes(&self, pods: usize) {
        let expected = pods * self.handlers.len();
        self.latencies.get_or_init(|| Latencies::new(expected));
        self.restart(meter::micros(), pods);
    }

    fn restart(&self, first: u64, pods: usize) {
        for seen in &self.handlers {
            seen.pods
                .iter()
                .for_each(|pods| pods.store(0, Ordering::Relaxed));
            seen.runs.store(0, Ordering::Relaxed);
        }
        self.missing
            .store(pods * self.handlers.len(), Ordering::Relaxed);
        self.first.store(first, Ordering::SeqCst);
    }

    /// Notes that a handler was called for a pod in the state of a number.
    pub(crate) fn saw(&self, handler: usize, name: &str, state: u64) {
        let latencies = self.latencies.get();
        let now = latencies.map_or(0, |_| meter::micros());
        let seen = &self.handlers[handler];
        seen.runs.fetch_add(1, Ordering::Relaxed);
        if state < self.first.load(Ordering::Relaxed) {
            return;
        }
        let index = pods::index(name);
        let bit = 1 << (index % 64);
        let before = seen.pods[index / 64].fetch_or(bit, Ordering::Relaxed);
        if before & bit != 0 {
            return;
        }
        if let Some(latencies) = latencies {
            latencies.note(state, now);
        }
        // What was noted has to be there for whoever is told that all is done.
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.done.notify_one();
        }
    }

    /// Waits until everything expected was seen.
    pub(crate) async fn all_seen(&self) {
        self.done.notified().await;
    }

    /// Returns how often handlers were called, all together.
    pub(crate) fn runs(&self) -> u64 {
        let runs = self
            .handlers
            .iter()
            .map(|seen| seen.runs.load(Ordering::Relaxed));
        runs.sum()
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
