//! A rate limit over all keys of a queue.

use std::time::{Duration, Instant};

use super::RateLimiter;

/// A token bucket over all keys of the queue: client-go's `BucketRateLimiter`.
///
/// It allows a burst, and after that a fixed number of retries per second, as `golang.org/x/time/rate` does. Each
/// failure reserves a token and waits until the token is available, so each further failure waits longer. The number of
/// failures in a row does not matter.
///
/// ```
/// use std::time::{Duration, Instant};
/// use lariat::queue::{RateLimiter, TokenBucket};
///
/// let (mut bucket, now) = (TokenBucket::new(10.0, 1), Instant::now());
/// assert_eq!(bucket.delay(1, now), Duration::ZERO);
/// assert_eq!(bucket.delay(1, now), Duration::from_millis(100));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TokenBucket {
    /// New tokens per second.
    per_second: f64,
    /// The size of the bucket.
    burst: f64,
    /// The tokens in the bucket; negative while reservations wait.
    tokens: f64,
    /// The time at which `tokens` was computed; `None` before the first failure.
    at: Option<Instant>,
}

impl TokenBucket {
    /// Creates a full bucket of `burst` tokens that refills at `per_second`.
    ///
    /// With a rate of zero, every failure beyond the burst waits forever. With a burst of zero, every failure does,
    /// unless the rate is infinite.
    ///
    /// # Panics
    ///
    /// If `per_second` is negative or not a number.
    #[must_use]
    pub fn new(per_second: f64, burst: u32) -> Self {
        assert!(
            per_second >= 0.0,
            "a token bucket cannot have a rate of {per_second}"
        );
        Self {
            per_second,
            burst: burst.into(),
            tokens: burst.into(),
            at: None,
        }
    }
}

impl RateLimiter for TokenBucket {
    fn delay(&mut self, _: u32, now: Instant) -> Duration {
        // The bucket never contains a whole token, however long one waits.
        if self.burst < 1.0 && self.per_second.is_finite() {
            return Duration::MAX;
        }
        let since = self
            .at
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        // A clock that went backwards must not let the same time refill the bucket twice.
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
        let fallen = since.as_secs_f64() * self.per_second;
        // An infinite rate refills the bucket immediately, however little time has passed.
        let fallen = if self.per_second.is_infinite() {
            f64::INFINITY
        } else {
            fallen
        };
        self.tokens = (self.tokens + fallen).min(self.burst) - 1.0;
        if self.tokens >= 0.0 || self.per_second.is_infinite() {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-self.tokens / self.per_second).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "an arbitrary origin of virtual time"
)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let (mut bucket, start) = (TokenBucket::new(10.0, 3), Instant::now());
        let mut delay = |after| {
            bucket
                .delay(1, start + Duration::from_millis(after))
                .as_millis()
        };
        assert_eq!([delay(0), delay(0), delay(0)], [0, 0, 0]);
        assert_eq!([delay(0), delay(0), delay(50)], [100, 200, 250]);
        assert_eq!(delay(300), 100, "what was reserved is paid");
        assert_eq!(
            [delay(10_000), delay(10_000), delay(10_000), delay(10_000)],
            [0, 0, 0, 100]
        );
    }

    #[test]
    fn extreme_rates_neither_overflow_nor_divide_by_zero() {
        let now = Instant::now();
        let mut never = TokenBucket::new(0.0, 1);
        assert_eq!(
            [never.delay(1, now), never.delay(1, now)],
            [Duration::ZERO, Duration::MAX]
        );
        let mut always = TokenBucket::new(f64::INFINITY, 0);
        assert_eq!(
            [always.delay(1, now), always.delay(1, now)],
            [Duration::ZERO; 2]
        );
        let mut slow = TokenBucket::new(f64::MIN_POSITIVE, 1);
        assert_eq!(
            [slow.delay(1, now), slow.delay(1, now)],
            [Duration::ZERO, Duration::MAX]
        );
        assert_eq!(TokenBucket::new(10.0, 0).delay(1, now), Duration::MAX);
    }

    #[test]
    fn a_clock_that_jumps_back_costs_nothing() {
        let (mut bucket, start) = (TokenBucket::new(1.0, 1), Instant::now());
        let later = start + Duration::from_secs(10);
        assert_eq!(bucket.delay(1, later), Duration::ZERO);
        assert_eq!(bucket.delay(1, start), Duration::from_secs(1));
        assert_eq!(
            bucket.delay(1, later + Duration::from_secs(2)),
            Duration::ZERO
        );
    }
}
