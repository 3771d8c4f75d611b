//! The delay before a failed lane is retried.

mod adapters;
mod bucket;
mod curves;

use std::time::{Duration, Instant};

pub use adapters::{AtMost, Jittered, MaxOf};
pub use bucket::TokenBucket;
pub use curves::{Exponential, FastSlow};

/// A rate limiter turns the failures of a lane into a delay.
///
/// The queue counts failures in a row per key and lane, and resets them on success, so a limiter needs no state per
/// key. Each queue has its own limiter and calls it under the queue's lock: it must be quick and must not use the
/// queue. Every `FnMut(u32) -> Duration` is a rate limiter.
///
/// ```
/// use std::time::Duration;
/// use lariat_queue::{Exponential, RateLimiter, TokenBucket, WorkQueue};
///
/// let curve = Exponential::new(Duration::from_millis(5), Duration::from_secs(300))
///     .max_of(TokenBucket::new(10.0, 100))
///     .jittered(0.2)
///     .at_most(Duration::from_secs(600));
/// let queue: WorkQueue<u32> = WorkQueue::builder().limiter(curve).build();
/// # drop(queue);
/// ```
pub trait RateLimiter: Send + 'static {
    /// Returns the delay after a failure, counted from `now`.
    ///
    /// `failures` is the number of failures in a row; the first is 1.
    fn delay(&mut self, failures: u32, now: Instant) -> Duration;

    /// Waits the longer delay of two limiters: client-go's `MaxOfRateLimiter`.
    ///
    /// Both are called every time.
    fn max_of<L: RateLimiter>(self, other: L) -> MaxOf<Self, L>
    where
        Self: Sized,
    {
        MaxOf(self, other)
    }

    /// Limits the delay: client-go's `WithMaxWaitRateLimiter`.
    fn at_most(self, longest: Duration) -> AtMost<Self>
    where
        Self: Sized,
    {
        AtMost::new(self, longest)
    }

    /// Lengthens each delay at random by up to this share of it: client-go's `wait.Jitter`.
    ///
    /// Keys that failed together are then retried at different times.
    ///
    /// # Panics
    ///
    /// If the share is negative or not a number.
    fn jittered(self, share: f64) -> Jittered<Self>
    where
        Self: Sized,
    {
        Jittered::new(self, share)
    }
}

impl<F: FnMut(u32) -> Duration + Send + 'static> RateLimiter for F {
    fn delay(&mut self, failures: u32, _: Instant) -> Duration {
        self(failures)
    }
}

/// Returns lasso's default: 5 ms doubling up to 30 s, and 2 min from the 31st failure on.
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
/// That is 5 ms doubling up to 1000 s, and over all keys together 10 a second after a burst of 100.
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

    #[test]
    fn a_function_is_a_limiter() {
        let mut limiter = |failures| Duration::from_secs(u64::from(failures));
        assert_eq!(limiter.delay(7, Instant::now()), Duration::from_secs(7));
    }
}
