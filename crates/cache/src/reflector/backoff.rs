//! Backoff: the delay before a reflector retries.

use std::time::Duration;

/// The delays after consecutive failures.
///
/// An exponential backoff with jitter, on client-go's curve for reflectors: 0.8 s, doubling up to 30 s. Failures
/// without an answer and error answers are counted separately, so that the long delays of an outage do not apply to a
/// server that is back. `Retry-After` is followed as client-go's REST client does: ten times in a row; after that it is
/// the minimum of an exponential delay.
///
/// Only a watch that worked resets it. Otherwise a list that works, followed by a watch that fails, would be a hot
/// loop.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// Consecutive attempts without an answer.
    unanswered: u32,
    /// Consecutive error answers.
    refused: u32,
    /// Consecutive answers with a `Retry-After`.
    postponed: u32,
    /// Consecutive versions that had expired.
    outdated: u32,
    /// Whether the last attempt was not answered.
    is_away: bool,
}

/// What a failure says about the server; it selects the delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureClass {
    /// The server did not answer.
    Unanswered,
    /// The server answered with an error.
    Refused,
    /// The server is busy or starting, and has sent `Retry-After`.
    Postponed(Duration),
    /// Only the version is wrong; a new list replaces it.
    Outdated,
}

const BASE: Duration = Duration::from_millis(800);
const MAX: Duration = Duration::from_secs(30);

/// How many `Retry-After` in a row decide about the delay alone.
const POSTPONEMENTS: u32 = 10;

/// How many `Retry-After` in a row are usual for a starting server or a new CRD.
const BRIEF: u32 = 3;

impl Backoff {
    /// Returns the delay after one more failure.
    ///
    /// `jitter` is a random number from 0 to 1.
    pub(super) fn fail(&mut self, failure_class: FailureClass, jitter: f64) -> Duration {
        let was_away =
            std::mem::replace(&mut self.is_away, failure_class == FailureClass::Unanswered);
        // The server answers again, so errors from before the outage say nothing about it.
        if was_away && !self.is_away {
            (self.refused, self.postponed) = (0, 0);
        }
        match failure_class {
            FailureClass::Unanswered => exponential(&mut self.unanswered, jitter),
            FailureClass::Refused => exponential(&mut self.refused, jitter),
            FailureClass::Postponed(asked) if self.postponed < POSTPONEMENTS => {
                self.postponed += 1;
                // All other clients got the same delay, so jitter is added, and never subtracted.
                asked.mul_f64(1.0 + 0.25 * jitter)
            }
            FailureClass::Postponed(asked) => exponential(&mut self.refused, jitter).max(asked),
            // An expired version is usual: the first new list follows at once, further ones back off.
            FailureClass::Outdated if self.outdated == 0 => {
                self.outdated = 1;
                Duration::ZERO
            }
            FailureClass::Outdated => exponential(&mut self.outdated, jitter),
        }
    }

    /// Returns whether the last failed attempt was not answered.
    pub(super) fn is_away(&self) -> bool {
        self.is_away
    }

    /// Returns whether the recent failures are usual for a starting server.
    pub(super) fn is_brief(&self) -> bool {
        (1..=BRIEF).contains(&self.postponed) && self.refused == 0
    }

    /// Records that all objects were read, so the server is not too busy.
    pub(super) fn served(&mut self) {
        self.postponed = 0;
    }

    /// Records that the last version that had expired was not the one of the store.
    pub(super) fn forgotten(&mut self) {
        self.outdated = 0;
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

fn exponential(failures: &mut u32, jitter: f64) -> Duration {
    let doublings = (*failures).min(16);
    *failures = failures.saturating_add(1);
    let delay = (BASE * 2_u32.pow(doublings)).min(MAX);
    // Jitter: clients that lost the same server must not retry at the same time.
    delay.mul_f64(0.75 + 0.5 * jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the delays are around these, in seconds.
    fn check(backoff: &mut Backoff, failure_class: FailureClass, expected: &[f64]) {
        for expected in expected {
            let delay = backoff.fail(failure_class, fastrand::f64()).as_secs_f64();
            let around = 0.75 * expected..=1.25 * expected;
            assert!(
                around.contains(&delay),
                "{failure_class:?}: {delay} for {expected}"
            );
        }
    }

    #[test]
    fn delays_double_up_to_a_cap_around_their_jitter() {
        for failure_class in [FailureClass::Unanswered, FailureClass::Refused] {
            let mut backoff = Backoff::default();
            check(
                &mut backoff,
                failure_class,
                &[0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0],
            );
            backoff.reset();
            check(&mut backoff, failure_class, &[0.8]);
        }
    }

    #[test]
    fn a_server_that_answers_again_has_short_delays() {
        let mut backoff = Backoff::default();
        check(
            &mut backoff,
            FailureClass::Unanswered,
            &[0.8, 1.6, 3.2, 6.4, 12.8, 25.6],
        );
        check(&mut backoff, FailureClass::Refused, &[0.8, 1.6]);
        // A server that fails with each answer is.
        check(&mut backoff, FailureClass::Unanswered, &[30.0]);
        check(&mut backoff, FailureClass::Refused, &[0.8]);
        check(&mut backoff, FailureClass::Unanswered, &[30.0]);
    }

    #[test]
    fn a_server_is_asked_again_when_it_says_ten_times_in_a_row() {
        let mut backoff = Backoff::default();
        let second = Duration::from_secs(1);
        for _ in 0..10 {
            let delay = backoff.fail(FailureClass::Postponed(second), fastrand::f64());
            assert!((second..=second.mul_f64(1.25)).contains(&delay));
        }
        for _ in 0..3 {
            assert!(backoff.fail(FailureClass::Postponed(second), 0.0) >= second);
        }
        let minute = Duration::from_secs(60);
        assert!(backoff.fail(FailureClass::Postponed(minute), 0.0) >= minute);
    }

    #[test]
    fn an_expired_version_is_followed_by_a_list_immediately_but_only_once() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.fail(FailureClass::Outdated, 0.5), Duration::ZERO);
        check(&mut backoff, FailureClass::Outdated, &[1.6, 3.2, 6.4]);
    }
}
