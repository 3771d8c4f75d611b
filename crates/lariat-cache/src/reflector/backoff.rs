//! How long a reflector waits between attempts.

use std::time::Duration;

/// Exponential backoff with jitter: client-go's curve for reflectors, 0.8 s doubling up to 30 s.
///
/// It starts again only after a watch that told something, so that a list that works beside a watch
/// that does not cannot spin.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

const BASE: Duration = Duration::from_millis(800);
const MAX: Duration = Duration::from_secs(30);

impl Backoff {
    /// Returns the delay after one more failure, at least what the server asks for.
    pub(super) fn fail(&mut self, at_least: Option<Duration>) -> Duration {
        let doublings = self.failures.min(16);
        self.failures = self.failures.saturating_add(1);
        let delay = (BASE * 2_u32.pow(doublings)).min(MAX);
        // Clients that lost the same server must not come back in step.
        let jittered = delay.mul_f64(0.75 + 0.5 * fastrand::f64());
        let asked = at_least
            .unwrap_or_default()
            .mul_f64(1.0 + 0.1 * fastrand::f64());
        jittered.max(asked)
    }

    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_cap_around_their_jitter() {
        let mut backoff = Backoff::default();
        for expected in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            let delay = backoff.fail(None).as_secs_f64();
            assert!(
                (0.75 * expected..=1.25 * expected).contains(&delay),
                "{delay} for {expected}"
            );
        }
        backoff.reset();
        assert!(backoff.fail(None) <= Duration::from_secs(1));
        let asked = backoff.fail(Some(Duration::from_secs(60))).as_secs_f64();
        assert!((60.0..=66.0).contains(&asked), "{asked}");
    }
}
