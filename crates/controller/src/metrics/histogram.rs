//! Converts histograms to Prometheus buckets.

use std::time::Duration;

use lariat_cache::RequestTimes;
use lariat_queue::Histogram;

/// A histogram as it is written.
pub(super) struct Measured {
    /// The sum in seconds.
    pub(super) sum: f64,
    pub(super) count: u64,
    /// Inclusive upper bounds in seconds, and counts; the last is unbounded.
    pub(super) buckets: Vec<(f64, u64)>,
}

impl From<&Histogram> for Measured {
    fn from(histogram: &Histogram) -> Self {
        Self {
            sum: histogram.sum().as_secs_f64(),
            count: histogram.count(),
            buckets: buckets(histogram),
        }
    }
}

impl From<Histogram> for Measured {
    fn from(histogram: Histogram) -> Self {
        Self::from(&histogram)
    }
}

impl From<&RequestTimes> for Measured {
    fn from(times: &RequestTimes) -> Self {
        let seconds = |bound: Option<Duration>| bound.map_or(f64::INFINITY, |it| it.as_secs_f64());
        let buckets = times
            .buckets()
            .map(|(bound, count)| (seconds(bound), count));
        Self {
            sum: times.sum.as_secs_f64(),
            count: times.count(),
            buckets: buckets.collect(),
        }
    }
}

/// The number of bounded buckets.
///
/// Every second power of two of a microsecond, up to 1,074 seconds.
const BOUNDED: usize = 16;

/// Returns the buckets as inclusive upper bound in seconds and count.
///
/// The last is unbounded.
///
/// They are exact, because each bound is also a bound of the histogram.
fn buckets(histogram: &Histogram) -> Vec<(f64, u64)> {
    let mut buckets = Vec::with_capacity(BOUNDED + 1);
    let (mut sum, mut rest) = (0, 0);
    for (power, (bound, count)) in histogram.buckets().enumerate() {
        sum += count;
        if buckets.len() == BOUNDED {
            rest += count;
        // Two buckets of the histogram make one of Prometheus, to halve the number of series.
        } else if power % 2 == 0 {
            buckets.push((bound.as_secs_f64(), std::mem::take(&mut sum)));
        }
    }
    buckets.push((f64::INFINITY, rest));
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bucket that counts a duration, by its bound.
    fn bound(duration: Duration) -> f64 {
        let mut histogram = Histogram::default();
        histogram.record(duration);
        let buckets = buckets(&histogram);
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 1);
        let counting = buckets.iter().find(|(_, count)| *count == 1);
        counting.unwrap().0
    }

    #[test]
    fn a_bound_is_in_its_bucket_and_what_is_longer_is_in_the_next() {
        let (nano, micro) = (Duration::from_nanos(1), Duration::from_micros(1));
        assert_eq!(bound(Duration::ZERO), 0.000_001);
        assert_eq!((bound(micro), bound(micro + nano)), (0.000_001, 0.000_004));
        assert_eq!(bound(4 * micro + nano), 0.000_016);
        assert_eq!(bound(Duration::from_secs(1)), 1.048_576);
    }

    #[test]
    fn what_is_longer_than_the_last_bound_counts_without_one() {
        let last = Duration::from_micros(1 << 30);
        assert_eq!(bound(last), 1_073.741_824);
        assert_eq!(bound(last + Duration::from_nanos(1)), f64::INFINITY);
        assert_eq!(bound(Duration::MAX), f64::INFINITY);
    }
}
