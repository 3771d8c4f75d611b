//! The default rate limiters of other libraries.

use std::time::Duration;

use super::bucket::TokenBucket;
use super::curves::{Exponential, FastSlow};
use super::limiter::RateLimiter;

/// Returns lasso's default: 5 ms doubling up to 30 s, then 2 min.
///
/// The 2 minutes start at the 31st failure in a row. This is also the default of a [`WorkQueue`](crate::WorkQueue).
///
/// ```
/// use std::time::{Duration, Instant};
/// use lariat::queue::{RateLimiter, lasso_default};
///
/// let (mut limiter, now) = (lasso_default(), Instant::now());
/// assert_eq!(limiter.delay(1, now), Duration::from_millis(5));
/// assert_eq!(limiter.delay(31, now), Duration::from_secs(120));
/// ```
#[must_use]
pub fn lasso_default() -> impl RateLimiter {
    let fast_slow = FastSlow::new(Duration::from_millis(1), Duration::from_secs(120), 30);
    Exponential::new(Duration::from_millis(5), Duration::from_secs(30)).max_of(fast_slow)
}

/// Returns controller-runtime's default: 5 ms doubling up to 1000 s.
#[must_use]
pub fn controller_runtime_default() -> impl RateLimiter {
    Exponential::new(Duration::from_millis(5), Duration::from_secs(1000))
}

/// Returns client-go's `DefaultTypedControllerRateLimiter`.
///
/// That is 5 ms doubling up to 1000 s per key, and over all keys 10 retries per second after a burst of 100.
#[must_use]
pub fn client_go_default() -> impl RateLimiter {
    controller_runtime_default().max_of(TokenBucket::new(10.0, 100))
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "an arbitrary origin of virtual time"
)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn lasso_s_curve_has_three_parts() {
        let (mut limiter, now) = (lasso_default(), Instant::now());
        for (failures, expected) in [(1, 5), (2, 10), (13, 20_480), (14, 30_000), (30, 30_000)] {
            let expected = Duration::from_millis(expected);
            assert_eq!(limiter.delay(failures, now), expected, "{failures}");
        }
        for failures in [31, 32, u32::MAX] {
            assert_eq!(limiter.delay(failures, now), Duration::from_secs(120));
        }
    }

    #[test]
    fn the_presets_of_go_end_at_a_thousand_seconds() {
        let now = Instant::now();
        let mut limiter = controller_runtime_default();
        assert_eq!(limiter.delay(1, now), Duration::from_millis(5));
        assert_eq!(limiter.delay(18, now), Duration::from_millis(655_360));
        assert_eq!(limiter.delay(19, now), Duration::from_secs(1000));
        let mut limiter = client_go_default();
        for _ in 0..100 {
            assert_eq!(limiter.delay(1, now), Duration::from_millis(5));
        }
        assert_eq!(
            limiter.delay(1, now),
            Duration::from_millis(100),
            "the bucket is empty"
        );
    }
}
