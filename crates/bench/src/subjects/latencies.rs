//! How long what the server wrote was under way to handlers.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// So many times, which many threads may note.
#[derive(Debug)]
pub(super) struct Latencies {
    micros: Vec<AtomicU64>,
    noted: AtomicUsize,
}

impl Latencies {
    pub(super) fn new(expected: usize) -> Self {
        Self {
            micros: (0..expected).map(|_| AtomicU64::new(0)).collect(),
            noted: AtomicUsize::new(0),
        }
    }

    /// Notes the time from when something was written until it was seen.
    pub(super) fn note(&self, written: u64, seen: u64) {
        // Every thread has a place of its own, so no lock is measured.
        let place = self.noted.fetch_add(1, Ordering::Relaxed);
        if let Some(micros) = self.micros.get(place) {
            micros.store(seen.saturating_sub(written), Ordering::Relaxed);
        }
    }

    /// Returns what was noted, in microseconds.
    pub(super) fn micros(&self) -> Vec<f64> {
        let noted = self.noted.load(Ordering::Relaxed);
        let micros = self.micros.iter().take(noted);
        micros
            .map(|micros| micros.load(Ordering::Relaxed) as f64)
            .collect()
    }
}
