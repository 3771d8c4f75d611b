//! How long a failed lane waits before it is tried again.

use std::time::Duration;

/// Turns the failures of a lane into a delay.
///
/// The queue counts failures per key and lane and forgets them on success, so a limiter needs no
/// state per key.
pub trait RateLimiter: Send + 'static {
    /// Returns the delay after the `failures`-th failure in a row; the first is 1.
    fn delay(&mut self, failures: u32) -> Duration;
}

impl<F: FnMut(u32) -> Duration + Send + 'static> RateLimiter for F {
    fn delay(&mut self, failures: u32) -> Duration {
        self(failures)
    }
}

/// Doubles from `base` up to `max`: client-go's `ItemExponentialFailureRateLimiter`.
#[derive(Debug, Clone, Copy)]
pub struct Exponential {
    base: Duration,
    max: Duration,
}

impl Exponential {
    /// Waits `base` after the first failure and never longer than `max`.
    #[must_use]
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max }
    }
}

impl RateLimiter for Exponential {
    fn delay(&mut self, failures: u32) -> Duration {
        let factor = 2_u32
            .checked_pow(failures.saturating_sub(1))
            .unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.max)
    }
}

/// Waits `fast` for the first failures and `slow` after: client-go's `ItemFastSlowRateLimiter`.
#[derive(Debug, Clone, Copy)]
pub struct FastSlow {
    fast: Duration,
    slow: Duration,
    fast_failures: u32,
}

impl FastSlow {
    /// Waits `fast` after each of the first `fast_failures` failures, `slow` after later ones.
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
    fn delay(&mut self, failures: u32) -> Duration {
        if failures <= self.fast_failures {
            self.fast
        } else {
            self.slow
        }
    }
}

/// Waits as long as the stricter of two limiters says.
#[derive(Debug, Clone, Copy)]
pub struct MaxOf<A, B>(pub A, pub B);

impl<A: RateLimiter, B: RateLimiter> RateLimiter for MaxOf<A, B> {
    fn delay(&mut self, failures: u32) -> Duration {
        self.0.delay(failures).max(self.1.delay(failures))
    }
}

/// Returns lasso's default curve: 5 ms doubling up to 30 s, and 2 min from the 31st failure on.
#[must_use]
pub fn lasso_default() -> impl RateLimiter {
    MaxOf(
        Exponential::new(Duration::from_millis(5), Duration::from_secs(30)),
        FastSlow::new(Duration::from_millis(1), Duration::from_secs(120), 30),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_doubles_up_to_its_cap_and_never_overflows() {
        let mut limiter = Exponential::new(Duration::from_millis(1), Duration::from_secs(1));
        let delays: Vec<u128> = (1..=5).map(|n| limiter.delay(n).as_millis()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16]);
        assert_eq!(limiter.delay(1000), Duration::from_secs(1));
        assert_eq!(limiter.delay(u32::MAX), Duration::from_secs(1));
    }

    #[test]
    fn lasso_s_curve_has_three_parts() {
        let mut limiter = lasso_default();
        assert_eq!(limiter.delay(1), Duration::from_millis(5));
        assert_eq!(limiter.delay(13), Duration::from_millis(20_480));
        assert_eq!(limiter.delay(14), Duration::from_secs(30));
        assert_eq!(limiter.delay(30), Duration::from_secs(30));
        assert_eq!(limiter.delay(31), Duration::from_secs(120));
    }
}
