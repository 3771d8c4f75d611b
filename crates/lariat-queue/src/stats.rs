//! What a queue tells about itself.

use std::time::Duration;

use crate::Priority;

/// Totals since the queue was made.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) adds: u64,
    pub(crate) retries: u64,
    pub(crate) requeues: u64,
    handed_out: u64,
    waits: WaitHistogram,
}

impl Counters {
    pub(crate) fn handed_out(&mut self, waited: Duration) {
        self.handed_out += 1;
        self.waits.record(waited);
    }
}

/// The figures of one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueueStats {
    /// Times a key became due; adds that merged into one count once.
    pub adds: u64,
    /// Times a failed lane was scheduled again.
    pub retries: u64,
    /// Times a lane asked to come again.
    pub requeues: u64,
    /// Times a key was handed to a worker.
    pub handed_out: u64,
    /// Keys that wait for a delay to end, or for the end of a drain.
    pub delayed: usize,
    /// Keys with a worker.
    pub held: usize,
    /// How long keys were ready before they were handed out.
    pub waits: WaitHistogram,
    depths: [usize; Priority::LEVELS],
}

impl QueueStats {
    pub(crate) fn new(
        counters: &Counters,
        depths: [usize; Priority::LEVELS],
        delayed: usize,
        held: usize,
    ) -> Self {
        Self {
            adds: counters.adds,
            retries: counters.retries,
            requeues: counters.requeues,
            handed_out: counters.handed_out,
            delayed,
            held,
            waits: counters.waits.clone(),
            depths,
        }
    }

    /// Returns how many keys are ready.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depths.iter().sum()
    }

    /// Returns how many keys are ready at one priority.
    #[must_use]
    pub fn depth_of(&self, priority: Priority) -> usize {
        self.depths[priority.level()]
    }
}

/// Durations counted in powers of two of a microsecond.
#[derive(Debug, Clone)]
pub struct WaitHistogram {
    /// `buckets[i]` counts durations below 2^i µs and not below 2^(i-1) µs.
    buckets: [u64; BUCKETS],
    max: Duration,
}

/// Up to about 75 hours; what is longer counts there too.
const BUCKETS: usize = 38;

impl Default for WaitHistogram {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS],
            max: Duration::ZERO,
        }
    }
}

impl WaitHistogram {
    fn record(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
        self.max = self.max.max(duration);
    }

    /// Returns how many durations were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the longest duration, exactly.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.max
    }

    /// Returns a duration that the given share of all durations does not exceed, such as `0.99`.
    ///
    /// It is the upper bound of a bucket, so up to twice the true value; zero if nothing was counted.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (share.clamp(0.0, 1.0) * self.count() as f64).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank.max(1) {
                return Duration::from_micros(1 << bucket).min(self.max);
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_bound_the_durations_from_above_by_less_than_twice() {
        let mut waits = WaitHistogram::default();
        for micros in 1..=1000 {
            waits.record(Duration::from_micros(micros));
        }
        for (share, exact) in [(0.5, 500), (0.99, 990), (1.0, 1000)] {
            let bound = waits.quantile(share).as_micros();
            assert!((exact..2 * exact).contains(&bound), "{share}: {bound}");
        }
        assert_eq!(
            (waits.count(), waits.max()),
            (1000, Duration::from_millis(1))
        );
    }

    #[test]
    fn extremes_have_a_bucket() {
        let mut waits = WaitHistogram::default();
        assert_eq!(waits.quantile(0.5), Duration::ZERO);
        waits.record(Duration::ZERO);
        assert_eq!(waits.quantile(1.0), Duration::ZERO);
        waits.record(Duration::MAX);
        assert_eq!(waits.count(), 2);
    }
}
