//! A rate: how many requests are allowed in a time.

use std::time::{Duration, Instant};

/// The longest time between two requests: thirty years, which an [`Instant`] always reaches.
const LONGEST: Duration = Duration::from_secs(30 * 365 * 86_400);

/// How many requests are allowed in a time, all of which may be sent at once.
///
/// Spent requests are allowed again evenly over that time.
///
/// ```
/// use std::time::{Duration, Instant};
/// use lariat_http::Rate;
///
/// let (rate, now) = (Rate::new(2, Duration::from_secs(10)), Instant::now());
/// let full = rate.spend(Some(rate.spend(None, now)), now);
/// assert_eq!(rate.wait(Some(full), 1, now), Duration::from_secs(5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    requests: u32,
    per: Duration,
}

impl Rate {
    /// Allows a number of requests in a time; zero requests count as one.
    #[must_use]
    pub const fn new(requests: u32, per: Duration) -> Self {
        let requests = if requests == 0 { 1 } else { requests };
        Self { requests, per }
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Returns the time in which they are allowed.
    #[must_use]
    pub fn per(&self) -> Duration {
        self.per
    }

    /// Returns how long to wait for this many requests; zero if they are allowed.
    ///
    /// `full` is the time at which all requests are allowed again, as [`spend`](Self::spend) returns it; `None` if none
    /// was spent. More than half of the requests, even more than all, are allowed while half are left; further ones
    /// wait accordingly longer.
    #[must_use]
    pub fn wait(&self, full: Option<Instant>, requests: usize, now: Instant) -> Duration {
        let half = self.requests.div_ceil(2);
        let wanted = u32::try_from(requests).map_or(half, |requests| requests.min(half));
        let missing = full.map_or(Duration::ZERO, |full| full.saturating_duration_since(now));
        missing.saturating_sub(self.interval() * (self.requests - wanted))
    }

    /// Spends a request; returns the time at which all requests are allowed again.
    #[must_use]
    pub fn spend(&self, full: Option<Instant>, now: Instant) -> Instant {
        full.map_or(now, |full| full.max(now)) + self.interval()
    }

    fn interval(&self) -> Duration {
        (self.per / self.requests).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn now() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    #[test]
    fn requests_come_back_evenly() {
        let (rate, now) = (Rate::new(4, 8 * SECOND), now());
        let mut full = None;
        for _ in 0..4 {
            assert_eq!(rate.wait(full, 1, now), Duration::ZERO);
            full = Some(rate.spend(full, now));
        }
        assert_eq!(rate.wait(full, 1, now), 2 * SECOND);
        assert_eq!(rate.wait(full, 2, now), 4 * SECOND);
        let now = now + 2 * SECOND;
        assert_eq!(rate.wait(full, 1, now), Duration::ZERO);
        assert_eq!(rate.wait(full, 2, now), 2 * SECOND);
    }

    #[test]
    fn more_than_the_rate_waits_for_half_of_it() {
        let (rate, now) = (Rate::new(4, 8 * SECOND), now());
        assert_eq!(rate.wait(None, 100, now), Duration::ZERO);
        let full = (0..3).fold(None, |full, _| Some(rate.spend(full, now)));
        assert_eq!(rate.wait(full, 100, now), 2 * SECOND);
        let spent = (0..9).fold(None, |full, _| Some(rate.spend(full, now)));
        assert_eq!(rate.wait(spent, 1, now), 12 * SECOND);
    }

    #[test]
    fn longest_time_allows_one_request() {
        let (rate, now) = (Rate::new(1, Duration::MAX), now());
        let full = rate.spend(Some(rate.spend(None, now)), now);
        assert_eq!(rate.wait(Some(full), 1, now), 2 * LONGEST);
    }

    #[test]
    fn rate_of_zero_requests_allows_one() {
        assert_eq!(Rate::new(0, SECOND).requests(), 1);
    }
}
