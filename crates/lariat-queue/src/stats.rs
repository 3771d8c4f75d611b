//! Metrics of a queue.

use std::time::Duration;

use crate::Priority;

/// The metrics of a queue at one moment: client-go's workqueue metrics, and more.
///
/// A snapshot is a copy of fixed size, taken under the lock of the queue.
///
/// ```
/// use lariat_queue::{Add, WorkQueue};
///
/// let queue: WorkQueue<&str> = WorkQueue::default();
/// queue.add("pod-a", Add::now());
/// queue.add("pod-a", Add::now());
/// queue.add("pod-b", Add::now());
/// let work = queue.try_get();
/// let stats = queue.stats();
/// assert_eq!((stats.adds, stats.depth(), stats.processing), (2, 1, 1));
/// # drop(work);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueueStats {
    /// How many times a key became due (`adds_total`); merged adds count once.
    pub adds: u64,
    /// How many times a lane was scheduled again after a failure (`retries_total`).
    ///
    /// Rate limited adds count too, and lanes that were postponed.
    pub retries: u64,
    /// How many times a lane asked for another run.
    pub requeues: u64,
    /// How many times a key was dequeued.
    pub dequeued: u64,
    /// Keys that wait for a delay to end, or for the end of a drain.
    pub delayed: usize,
    /// Keys that are being processed.
    pub processing: usize,
    /// Keys in processing that will be ready again as soon as they come back.
    pub dirty: usize,
    /// The time spent so far on the keys in processing, as a sum.
    ///
    /// client-go's `unfinished_work_seconds`.
    pub unfinished: Duration,
    /// The time spent so far on the oldest key in processing.
    ///
    /// client-go's `longest_running_processor_seconds`.
    pub longest: Duration,
    /// How long keys were ready before they were dequeued (`queue_duration_seconds`).
    pub waits: Histogram,
    /// How long workers processed keys (`work_duration_seconds`).
    pub works: Histogram,
    pub(crate) depths: [usize; Priority::LEVELS],
}

impl QueueStats {
    /// Returns how many keys have something due that no worker has (`depth`).
    ///
    /// These are the ready keys, and those in processing that are dirty.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depths.iter().sum()
    }

    /// Returns how many of these keys have the given priority.
    #[must_use]
    pub fn depth_of(&self, priority: Priority) -> usize {
        self.depths[priority.level()]
    }
}

/// The size of one of the structures in which a queue stores keys.
///
/// | `what` | keyed by | bound |
/// |---|---|---|
/// | `queue keys` | key | keys that are ready, delayed, kept for after a drain, or in processing |
/// | `queue tickets` | place in line | twice the keys in line, and 64 for each priority |
/// | `queue deadlines` | delayed lane of a key | twice those that count, at least 1,024 more |
/// | `queue processing` | key in processing | twice the keys in processing, and 64 |
///
/// A key is removed with its last lane: when a worker gives it back, and nothing of it is due or delayed. The failures
/// of its lanes are removed with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueMemory {
    /// The name of the structure.
    pub what: &'static str,
    /// The number of entries.
    pub entries: usize,
    /// The upper bound on the entries, given the keys in the queue at this moment.
    pub bound: usize,
}

impl QueueMemory {
    pub(crate) fn new(what: &'static str, entries: usize, bound: usize) -> Self {
        Self {
            what,
            entries,
            bound,
        }
    }
}

/// A histogram of durations with buckets in powers of two of a microsecond.
///
/// ```
/// use std::time::Duration;
/// use lariat_queue::Histogram;
///
/// let mut waits = Histogram::default();
/// (1..=100).for_each(|millis| waits.record(Duration::from_millis(millis)));
/// assert_eq!(waits.count(), 100);
/// assert!(waits.quantile(0.99) >= Duration::from_millis(99));
/// ```
#[derive(Debug, Clone)]
pub struct Histogram {
    /// `buckets[i]` counts durations above 2^(i-1) µs and up to 2^i µs.
    ///
    /// The first one counts all durations up to 1 µs.
    buckets: [u64; BUCKETS],
    sum: Duration,
    max: Duration,
}

/// Buckets reach up to 38 hours; the last one counts longer durations too.
const BUCKETS: usize = 38;

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS],
            sum: Duration::ZERO,
            max: Duration::ZERO,
        }
    }
}

impl Histogram {
    /// Adds a duration.
    pub fn record(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        // As in Prometheus, a bucket includes its upper bound. Durations of some nanoseconds more belong to the next
        // bucket.
        let above = u64::from(!duration.subsec_nanos().is_multiple_of(1000));
        let below = micros.saturating_add(above).saturating_sub(1);
        let bucket = (u64::BITS - below.leading_zeros()) as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
        self.sum = self.sum.saturating_add(duration);
        self.max = self.max.max(duration);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Iterates over the buckets as (inclusive upper bound, count).
    ///
    /// The last bucket also counts durations above its bound.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        let bound = |bucket: u32| Duration::from_micros(1 << bucket);
        (0..).map(bound).zip(self.buckets)
    }

    /// Returns the sum of all durations.
    #[must_use]
    pub fn sum(&self) -> Duration {
        self.sum
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

    /// Returns an upper bound for the given share of the durations, such as `0.99`.
    ///
    /// It is the upper bound of a bucket, so up to twice the true value; zero if nothing was recorded.
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

/// Totals since the queue was created.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) adds: u64,
    pub(crate) retries: u64,
    pub(crate) requeues: u64,
    /// Keys in processing of which something is due again; a gauge, not a total.
    pub(crate) dirty: usize,
    dequeued: u64,
    waits: Histogram,
    works: Histogram,
}

impl Counters {
    pub(crate) fn dequeued(&mut self, waited: Duration) {
        self.dequeued += 1;
        self.waits.record(waited);
    }

    pub(crate) fn worked(&mut self, took: Duration) {
        self.works.record(took);
    }

    /// Returns the totals, with zeros for the gauges that the core fills in.
    pub(crate) fn snapshot(&self) -> QueueStats {
        QueueStats {
            adds: self.adds,
            retries: self.retries,
            requeues: self.requeues,
            dequeued: self.dequeued,
            delayed: 0,
            processing: 0,
            dirty: self.dirty,
            unfinished: Duration::ZERO,
            longest: Duration::ZERO,
            waits: self.waits.clone(),
            works: self.works.clone(),
            depths: [0; Priority::LEVELS],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_bound_the_durations_from_above_by_less_than_twice() {
        let mut waits = Histogram::default();
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

    /// The bound of the bucket that counts a duration.
    fn bound(nanos: u64) -> u128 {
        let mut waits = Histogram::default();
        waits.record(Duration::from_nanos(nanos));
        let mut buckets = waits.buckets();
        let (bound, _) = buckets.find(|(_, count)| *count > 0).unwrap();
        bound.as_nanos()
    }

    #[test]
    fn a_bound_is_in_its_bucket_and_what_is_above_it_is_not() {
        assert_eq!((bound(0), bound(1), bound(1000)), (1000, 1000, 1000));
        assert_eq!((bound(1001), bound(2000), bound(2001)), (2000, 2000, 4000));
        assert_eq!((bound(1 << 20), bound(1_024_000)), (2_048_000, 1_024_000));
    }

    #[test]
    fn what_is_merged_is_counted_as_if_here() {
        let (mut one, mut other, mut both) = <(Histogram, Histogram, Histogram)>::default();
        for micros in 1..100 {
            let duration = Duration::from_micros(micros);
            [&mut one, &mut other][micros as usize % 2].record(duration);
            both.record(duration);
        }
        one.merge(&other);
        assert!(one.buckets().eq(both.buckets()));
        assert_eq!((one.sum(), one.max()), (both.sum(), both.max()));
    }

    #[test]
    fn extremes_have_a_bucket() {
        let mut waits = Histogram::default();
        assert_eq!(waits.quantile(0.5), Duration::ZERO);
        waits.record(Duration::ZERO);
        assert_eq!(waits.quantile(1.0), Duration::ZERO);
        waits.record(Duration::MAX);
        assert_eq!(waits.count(), 2);
    }
}
