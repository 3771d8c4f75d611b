//! The trait of rate limiters, and the limiters that wrap others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// The delay of a retry whose limiter panics.
const BROKEN_LIMITER: Duration = Duration::from_secs(30);

/// Computes the delay of a retry from the number of failures in a row.
///
/// The queue counts the failures per key and lane and resets them on success, so a limiter needs no state per key. It
/// is called under the lock of the queue: it must be quick and must not use the queue. If it panics while a key is
/// added, the panic is caught and the delay is 30 seconds. Every `FnMut(u32) -> Duration` is a rate limiter.
///
/// ```
/// use std::time::Duration;
/// use lariat::queue::{Exponential, RateLimiter, TokenBucket, WorkQueue};
///
/// let curve = Exponential::new(Duration::from_millis(5), Duration::from_secs(300))
///     .max_of(TokenBucket::new(10.0, 100))
///     .jittered(0.2)
///     .at_most(Duration::from_secs(600));
/// let queue: WorkQueue<u32> = WorkQueue::builder().limiter(curve).build();
/// # drop(queue);
/// ```
pub trait RateLimiter: Send + 'static {
    /// Returns the delay from `now` until the retry.
    ///
    /// `failures` is the number of failures in a row; the first is 1.
    fn delay(&mut self, failures: u32, now: Instant) -> Duration;

    /// Uses the longer delay of two limiters: client-go's `MaxOfRateLimiter`.
    ///
    /// Both limiters are called each time.
    fn max_of<L: RateLimiter>(self, other: L) -> MaxOf<Self, L>
    where
        Self: Sized,
    {
        MaxOf(self, other)
    }

    /// Caps the delay: client-go's `WithMaxWaitRateLimiter`.
    fn at_most(self, longest: Duration) -> AtMost<Self>
    where
        Self: Sized,
    {
        AtMost::new(self, longest)
    }

    /// Lengthens each delay by a random share of up to `share`: client-go's `wait.Jitter`.
    ///
    /// With `0.2`, a delay grows by up to 20 %. So keys that failed together are retried at different times.
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

/// Returns the delay of a limiter, or [`BROKEN_LIMITER`] if it panics.
///
/// The limiter is the user's, and the caller holds the lock of the queue: a panic would leave a key without a deadline.
pub(crate) fn delay_of(limiter: &mut dyn RateLimiter, failures: u32, now: Instant) -> Duration {
    let delay = AssertUnwindSafe(|| limiter.delay(failures, now));
    catch_unwind(delay).unwrap_or(BROKEN_LIMITER)
}

impl<F: FnMut(u32) -> Duration + Send + 'static> RateLimiter for F {
    fn delay(&mut self, failures: u32, _: Instant) -> Duration {
        self(failures)
    }
}

/// The longer delay of two limiters; see [`RateLimiter::max_of`].
#[derive(Debug, Clone, Copy)]
pub struct MaxOf<A, B>(pub A, pub B);

impl<A: RateLimiter, B: RateLimiter> RateLimiter for MaxOf<A, B> {
    fn delay(&mut self, failures: u32, now: Instant) -> Duration {
        self.0.delay(failures, now).max(self.1.delay(failures, now))
    }
}

/// A limiter with a maximum delay; see [`RateLimiter::at_most`].
#[derive(Debug, Clone, Copy)]
pub struct AtMost<L> {
    /// The wrapped limiter.
    inner: L,
    /// The maximum delay.
    longest: Duration,
}

impl<L> AtMost<L> {
    /// Wraps a limiter.
    fn new(inner: L, longest: Duration) -> Self {
        Self { inner, longest }
    }
}

impl<L: RateLimiter> RateLimiter for AtMost<L> {
    fn delay(&mut self, failures: u32, now: Instant) -> Duration {
        self.inner.delay(failures, now).min(self.longest)
    }
}

/// A limiter with random jitter; see [`RateLimiter::jittered`].
#[derive(Debug, Clone)]
pub struct Jittered<L> {
    /// The wrapped limiter.
    inner: L,
    /// The largest share of a delay that is added to it.
    share: f64,
    /// The source of random numbers.
    random: fastrand::Rng,
}

impl<L> Jittered<L> {
    /// Wraps a limiter.
    fn new(inner: L, share: f64) -> Self {
        assert!(
            share >= 0.0,
            "delays cannot be jittered by a share of {share}"
        );
        Self {
            inner,
            share,
            random: fastrand::Rng::new(),
        }
    }

    /// Seeds the random numbers, so that the delays are reproducible.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            ..self
        }
    }
}

impl<L: RateLimiter> RateLimiter for Jittered<L> {
    fn delay(&mut self, failures: u32, now: Instant) -> Duration {
        let delay = self.inner.delay(failures, now);
        let seconds = delay.as_secs_f64() * self.random.f64() * self.share;
        let longer = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        delay.saturating_add(longer)
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "an arbitrary origin of virtual time"
)]
mod tests {
    use super::super::{Exponential, FastSlow, lasso_default};
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_stricter_of_two_wins() {
        let fast_slow = FastSlow::new(ms(3), ms(5), 3);
        let mut limiter = Exponential::new(ms(1), ms(100)).max_of(fast_slow);
        let delays: Vec<Duration> = (1..=5).map(|n| limiter.delay(n, Instant::now())).collect();
        assert_eq!(delays, [ms(3), ms(3), ms(4), ms(8), ms(16)]);
    }

    #[test]
    fn no_delay_exceeds_the_bound() {
        let mut limiter = FastSlow::new(ms(5), ms(10_000), 1).at_most(ms(100));
        let now = Instant::now();
        assert_eq!(
            [limiter.delay(1, now), limiter.delay(2, now)],
            [ms(5), ms(100)]
        );
    }

    #[test]
    fn jitter_lengthens_by_its_share_at_most_and_is_repeatable_by_seed() {
        let now = Instant::now();
        let curve = || lasso_default().jittered(0.5).seeded(7);
        let (mut one, mut other) = (curve(), curve());
        let mut seen = Vec::new();
        for _ in 0..100 {
            let delay = one.delay(5, now);
            assert!((ms(80)..=ms(120)).contains(&delay), "{delay:?}");
            assert_eq!(delay, other.delay(5, now));
            seen.push(delay);
        }
        seen.dedup();
        assert!(seen.len() > 90);
        let mut endless = Exponential::new(Duration::MAX, Duration::MAX).jittered(f64::MAX);
        assert_eq!(endless.delay(2, now), Duration::MAX);
    }

    #[test]
    fn a_function_is_a_limiter() {
        let mut limiter = |failures| Duration::from_secs(u64::from(failures));
        assert_eq!(limiter.delay(7, Instant::now()), Duration::from_secs(7));
    }
}
