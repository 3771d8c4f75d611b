//! The metrics of a queue.

use std::time::Duration;

use crate::Priority;

/// The metrics of a queue at one moment, a superset of client-go's.
///
/// It is a copy of fixed size, taken under the lock of the queue.
///
/// ```
/// use lariat::queue::{Add, WorkQueue};
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
    /// How many times a key became due (`adds_total`). Merged adds count once.
    pub adds: u64,
    /// How many times a lane was scheduled again after a failure (`retries_total`).
    ///
    /// Includes rate-limited adds and postponed lanes.
    pub retries: u64,
    /// How many times a lane asked to run again without having failed.
    pub requeues: u64,
    /// How many times a key was dequeued.
    pub dequeued: u64,
    /// The number of keys that wait for a delay or for the end of a drain.
    pub delayed: usize,
    /// The number of keys that wait for lanes that are closed or at their limit, and have nothing else due.
    pub waiting: usize,
    /// The number of keys in processing.
    pub processing: usize,
    /// The number of keys in processing that were added again meanwhile.
    pub dirty: usize,
    /// The total time spent so far on the keys in processing.
    ///
    /// client-go's `unfinished_work_seconds`.
    pub unfinished: Duration,
    /// The time spent so far on the key that has been in processing longest.
    ///
    /// client-go's `longest_running_processor_seconds`.
    pub longest: Duration,
    /// How long keys were due before they were dequeued (`queue_duration_seconds`).
    pub waits: Histogram,
    /// How long workers processed keys (`work_duration_seconds`).
    pub works: Histogram,
    /// The depth by priority, the highest first.
    pub(crate) depths: [usize; Priority::LEVELS],
}

impl QueueStats {
    /// Returns the number of keys with due lanes (`depth`).
    ///
    /// These are the ready keys, and the keys in processing that were added again.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depths.iter().sum()
    }

    /// Returns the number of keys with due lanes of a priority.
    #[must_use]
    pub fn depth_of(&self, priority: Priority) -> usize {
        self.depths[priority.level()]
    }
}

/// The size of one of a queue's internal structures, and its bound.
///
/// | `name` | an entry is | bound |
/// |---|---|---|
/// | `queue keys` | a key | keys that are ready, waiting, delayed, deferred, or in processing |
/// | `queue tickets` | a position in the ready queue | twice the ready keys, plus 64 for each priority |
/// | `keys in line` | a key that waits at a lane's gate | the same; zero while the next one may pass |
///
/// A key is removed together with the failures of its lanes when a worker returns it and no lane is due, waits or is
/// delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueMemory {
    /// The name of the structure.
    pub name: &'static str,
    /// The number of entries.
    pub entries: usize,
    /// The upper bound on the entries, given the keys in the queue now.
    pub bound: usize,
}

impl QueueMemory {
    /// Creates a measurement.
    pub(crate) fn new(name: &'static str, entries: usize, bound: usize) -> Self {
        Self {
            name,
            entries,
            bound,
        }
    }
}

/// A histogram of durations with buckets in powers of two of a microsecond.
///
/// ```
/// use std::time::Duration;
/// use lariat::queue::Histogram;
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
    /// The first bucket counts all durations up to 1 µs.
    buckets: [u64; BUCKETS],
    /// The sum of all durations.
    sum: Duration,
    /// The longest duration.
    max: Duration,
}

/// The buckets reach up to 38 hours; the last one also counts longer durations.
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
    /// Counts a duration.
    pub fn record(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        // As in Prometheus, a bucket includes its upper bound. A duration of some nanoseconds more belongs to the next
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

    /// Iterates over the buckets as pairs of inclusive upper bound and count.
    ///
    /// The counts are not cumulative. The last bucket also counts durations above its bound.
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

    /// Returns the longest duration exactly; zero if nothing was counted.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.max
    }

    /// Returns an upper bound of a quantile, such as `0.99`.
    ///
    /// It is the upper bound of a bucket, so up to twice the true value. Zero if nothing was counted.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::queue::Histogram;
    ///
    /// let mut histogram = Histogram::default();
    /// (0..100).for_each(|_| histogram.record(Duration::from_micros(3)));
    /// histogram.record(Duration::from_secs(1));
    /// assert_eq!(histogram.quantile(0.5), Duration::from_micros(4));
    /// ```
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
    /// See [`QueueStats::adds`].
    pub(crate) adds: u64,
    /// See [`QueueStats::retries`].
    pub(crate) retries: u64,
    /// See [`QueueStats::requeues`].
    pub(crate) requeues: u64,
    /// The number of keys in processing with dirty lanes; a gauge, not a total.
    pub(crate) dirty: usize,
    /// See [`QueueStats::dequeued`].
    dequeued: u64,
    /// See [`QueueStats::waits`].
    waits: Histogram,
    /// See [`QueueStats::works`].
    works: Histogram,
}

impl Counters {
    /// Counts a dequeue.
    pub(crate) fn dequeued(&mut self, waited: Duration) {
        self.dequeued += 1;
        self.waits.record(waited);
    }

    /// Counts the end of a key's processing.
    pub(crate) fn worked(&mut self, took: Duration) {
        self.works.record(took);
    }

    /// Returns the totals; the gauges that only the core knows are zero.
    pub(crate) fn snapshot(&self) -> QueueStats {
        QueueStats {
            adds: self.adds,
            retries: self.retries,
            requeues: self.requeues,
            dequeued: self.dequeued,
            delayed: 0,
            waiting: 0,
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
