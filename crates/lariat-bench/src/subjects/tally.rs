//! Who has seen what: how a run knows that every handler was called for every object.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use lariat_core::ResourceVersion;
use tokio::sync::Notify;

use crate::pods;

/// Counts, for each handler, the pods it has seen in a state that is new enough.
#[derive(Debug)]
pub(crate) struct Tally {
    handlers: Vec<Seen>,
    /// States up to this version are too old to count.
    floor: AtomicU64,
    /// How many more first sights there have to be.
    missing: AtomicUsize,
    done: Notify,
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
            floor: AtomicU64::new(0),
            missing: AtomicUsize::new(pods * handlers),
            done: Notify::new(),
        })
    }

    /// Forgets what was seen, and expects every handler to see so many pods in states after a version.
    pub(crate) fn begin(&self, floor: u64, pods: usize) {
        for seen in &self.handlers {
            seen.pods
                .iter()
                .for_each(|pods| pods.store(0, Ordering::Relaxed));
            seen.runs.store(0, Ordering::Relaxed);
        }
        self.missing
            .store(pods * self.handlers.len(), Ordering::Relaxed);
        self.floor.store(floor, Ordering::SeqCst);
    }

    /// Notes that a handler was called for a pod.
    pub(crate) fn saw(&self, handler: usize, name: &str, version: u64) {
        let seen = &self.handlers[handler];
        seen.runs.fetch_add(1, Ordering::Relaxed);
        if version <= self.floor.load(Ordering::Relaxed) {
            return;
        }
        let index = pods::index(name);
        let bit = 1 << (index % 64);
        let before = seen.pods[index / 64].fetch_or(bit, Ordering::Relaxed);
        if before & bit == 0 && self.missing.fetch_sub(1, Ordering::Relaxed) == 1 {
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
