//! Delays that depend only on the number of failures in a row.

use std::time::{Duration, Instant};

use super::RateLimiter;

/// Exponential backoff: client-go's `ItemExponentialFailureRateLimiter`.
///
/// ```
/// use std::time::{Duration, Instant};
/// use lariat::queue::{Exponential, RateLimiter};
///
/// let mut backoff = Exponential::new(Duration::from_millis(5), Duration::from_secs(30));
/// let now = Instant::now();
/// assert_eq!(backoff.delay(1, now), Duration::from_millis(5));
/// assert_eq!(backoff.delay(3, now), Duration::from_millis(20));
/// assert_eq!(backoff.delay(99, now), Duration::from_secs(30));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Exponential {
    /// The delay after the first failure.
    base: Duration,
    /// The longest delay.
    max: Duration,
}

impl Exponential {
    /// Creates a backoff that doubles from `base` to at most `max`.
    ///
    /// With a `base` of zero, every delay is zero.
    #[must_use]
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max }
    }
}

impl RateLimiter for Exponential {
    fn delay(&mut self, failures: u32, _: Instant) -> Duration {
        let doublings = failures.saturating_sub(1);
        let nanos = self.base.as_nanos();
        // Beyond any duration, and the shift below must stay within 128 bits.
        if doublings > 100 {
            return if nanos == 0 { Duration::ZERO } else { self.max };
        }
        match u64::try_from(nanos.saturating_mul(1 << doublings)) {
            Ok(nanos) => Duration::from_nanos(nanos).min(self.max),
            Err(_) => self.max,
        }
    }
}

/// A short delay first, then a long one: client-go's `ItemFastSlowRateLimiter`.
///
/// ```
/// use std::time::{Duration, Instant};
/// use lariat::queue::{FastSlow, RateLimiter};
///
/// let mut delays = FastSlow::new(Duration::from_millis(5), Duration::from_secs(10), 3);
/// let now = Instant::now();
/// assert_eq!(delays.delay(3, now), Duration::from_millis(5));
/// assert_eq!(delays.delay(4, now), Duration::from_secs(10));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct FastSlow {
    /// The delay of the first failures.
    fast: Duration,
    /// The delay of later failures.
    slow: Duration,
    /// How many failures get the short delay.
    fast_failures: u32,
}

impl FastSlow {
    /// Creates a limiter that delays by `fast` at first and by `slow` later.
    ///
    /// The first `fast_failures` failures in a row count as early.
    #[must_use]
    pub fn new(fast: Duration, slow: Duration, fast_failures: u32) -> Self {
        Self {
            fast,
            slow,
            fast_failures,
        }
    }
}

impl RateLimiter for FastSlow {
    fn delay(&mut self, failures: u32, _: Instant) -> Duration {
        if failures <= self.fast_failures {
            self.fast
        } else {
            self.slow
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "an arbitrary origin of virtual time"
)]
mod tests {
    use super::*;

    fn delays(mut limiter: impl RateLimiter, failures: impl IntoIterator<Item = u32>) -> Vec<u128> {
        let now = Instant::now();
        let delay = |failures| limiter.delay(failures, now).as_millis();
        failures.into_iter().map(delay).collect()
    }

    #[test]
    fn exponential_delays_double() {
        let limiter = Exponential::new(Duration::from_millis(1), Duration::from_secs(1));
        assert_eq!(delays(limiter, 1..=5), [1, 2, 4, 8, 16]);
    }

    #[test]
    fn exponential_delays_never_overflow() {
        let limiter = Exponential::new(Duration::from_millis(1), Duration::from_secs(1));
        assert_eq!(delays(limiter, [11, 1000, u32::MAX]), [1000, 1000, 1000]);
        let limiter = Exponential::new(Duration::from_nanos(1), Duration::from_secs(1000));
        assert_eq!(
            delays(limiter, [41, 60, 1000]),
            [1_000_000; 3],
            "whatever the base"
        );
        assert_eq!(
            delays(
                Exponential::new(Duration::ZERO, Duration::MAX),
                [1, 50, 1000]
            ),
            [0, 0, 0]
        );
        let limiter = Exponential::new(Duration::from_secs(1_000_000), Duration::MAX);
        assert_eq!(delays(limiter, [1000]), [Duration::MAX.as_millis()]);
        let limiter = Exponential::new(Duration::from_secs(5), Duration::from_secs(1));
        assert_eq!(
            delays(limiter, [1]),
            [1000],
            "a base above the cap is the cap"
        );
    }

    #[test]
    fn fast_delays_turn_slow_after_so_many() {
        let limiter = FastSlow::new(Duration::from_millis(5), Duration::from_secs(10), 3);
        assert_eq!(delays(limiter, 1..=5), [5, 5, 5, 10_000, 10_000]);
    }
}
