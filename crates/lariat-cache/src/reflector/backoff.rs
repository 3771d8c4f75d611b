//! How long a reflector waits between attempts.

use std::time::Duration;

/// The waits after failures in a row.
///
/// Exponential with jitter, on client-go's curve for reflectors: 0.8 s doubling up to 30 s. A server that is away and
/// one that answers with errors are counted apart, so that the long waits of an outage do not delay what a living
/// server answers next. `Retry-After` is obeyed as client-go's REST client does: ten times in a row, and after that it
/// is the least of an exponential wait.
///
/// It starts again only after a watch that worked, so that a list that works beside a watch that does not cannot
/// become a hot loop.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// Attempts in a row to which nothing was answered.
    unanswered: u32,
    /// Errors in a row that a server answered with.
    refused: u32,
    /// Answers in a row that said when to come again.
    postponed: u32,
    /// Versions in a row that were too old to go on from.
    outdated: u32,
    /// Whether the last attempt was not answered.
    is_away: bool,
}

/// What a failure says about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setback {
    /// Nothing was answered.
    Unanswered,
    /// The server answered with an error.
    Refused,
    /// The server is busy or starting, and says when to come again.
    Postponed(Duration),
    /// Only the version is wrong, and reading everything mends that.
    Outdated,
}

const BASE: Duration = Duration::from_millis(800);
const MAX: Duration = Duration::from_secs(30);

/// How often in a row a server is asked again just when it says.
const POSTPONEMENTS: u32 = 10;

/// How many postponements in a row are what a server that starts, or a CRD that was just made, does.
const BRIEF: u32 = 3;

impl Backoff {
    /// Returns the delay after one more failure, varied by a random number from 0 to 1.
    pub(super) fn fail(&mut self, setback: Setback, jitter: f64) -> Duration {
        let was_away = std::mem::replace(&mut self.is_away, setback == Setback::Unanswered);
        if was_away && !self.is_away {
            (self.refused, self.postponed) = (0, 0);
        }
        match setback {
            Setback::Unanswered => exponential(&mut self.unanswered, jitter),
            Setback::Refused => exponential(&mut self.refused, jitter),
            Setback::Postponed(asked) if self.postponed < POSTPONEMENTS => {
                self.postponed += 1;
                // Everybody else was asked to come again after as long.
                asked.mul_f64(1.0 + 0.25 * jitter)
            }
            Setback::Postponed(asked) => exponential(&mut self.refused, jitter).max(asked),
            Setback::Outdated if self.outdated == 0 => {
                self.outdated = 1;
                Duration::ZERO
            }
            Setback::Outdated => exponential(&mut self.outdated, jitter),
        }
    }

    /// Returns the state as numbers.
    pub(super) fn state(&self) -> [u32; 5] {
        let is_away = u32::from(self.is_away);
        [
            self.unanswered,
            self.refused,
            self.postponed,
            self.outdated,
            is_away,
        ]
    }

    pub(super) fn of_state(state: [u32; 5]) -> Self {
        let [unanswered, refused, postponed, outdated, is_away] = state;
        Self {
            unanswered,
            refused,
            postponed,
            outdated,
            is_away: is_away == 1,
        }
    }

    /// Returns whether the last attempt that failed was not answered.
    pub(super) fn is_away(&self) -> bool {
        self.is_away
    }

    /// Returns whether the last failures are few enough to be a server's ordinary way of asking for patience.
    pub(super) fn is_brief(&self) -> bool {
        (1..=BRIEF).contains(&self.postponed) && self.refused == 0
    }

    /// Notes that everything there is was read: the server is not too busy.
    pub(super) fn served(&mut self) {
        self.postponed = 0;
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

fn exponential(failures: &mut u32, jitter: f64) -> Duration {
    let doublings = (*failures).min(16);
    *failures = failures.saturating_add(1);
    let delay = (BASE * 2_u32.pow(doublings)).min(MAX);
    // Clients that lost the same server must not come back in step.
    delay.mul_f64(0.75 + 0.5 * jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that delays are around these, in seconds.
    fn check(backoff: &mut Backoff, setback: Setback, expected: &[f64]) {
        for expected in expected {
            let delay = backoff.fail(setback, fastrand::f64()).as_secs_f64();
            let around = 0.75 * expected..=1.25 * expected;
            assert!(
                around.contains(&delay),
                "{setback:?}: {delay} for {expected}"
            );
        }
    }

    #[test]
    fn delays_double_up_to_a_cap_around_their_jitter() {
        for setback in [Setback::Unanswered, Setback::Refused] {
            let mut backoff = Backoff::default();
            check(
                &mut backoff,
                setback,
                &[0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0],
            );
            backoff.reset();
            check(&mut backoff, setback, &[0.8]);
        }
    }

    #[test]
    fn a_server_that_answers_again_is_not_waited_for_like_one_that_is_away() {
        let mut backoff = Backoff::default();
        check(
            &mut backoff,
            Setback::Unanswered,
            &[0.8, 1.6, 3.2, 6.4, 12.8, 25.6],
        );
        check(&mut backoff, Setback::Refused, &[0.8, 1.6]);
        // One that dies of each answer is.
        check(&mut backoff, Setback::Unanswered, &[30.0]);
        check(&mut backoff, Setback::Refused, &[0.8]);
        check(&mut backoff, Setback::Unanswered, &[30.0]);
    }

    #[test]
    fn a_server_is_asked_again_when_it_says_ten_times_in_a_row() {
        let mut backoff = Backoff::default();
        let second = Duration::from_secs(1);
        for _ in 0..10 {
            let delay = backoff.fail(Setback::Postponed(second), fastrand::f64());
            assert!((second..=second.mul_f64(1.25)).contains(&delay));
        }
        for _ in 0..3 {
            assert!(backoff.fail(Setback::Postponed(second), 0.0) >= second);
        }
        let minute = Duration::from_secs(60);
        assert!(backoff.fail(Setback::Postponed(minute), 0.0) >= minute);
    }

    #[test]
    fn everything_is_read_at_once_when_a_version_has_expired_but_not_again_and_again() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.fail(Setback::Outdated, 0.5), Duration::ZERO);
        check(&mut backoff, Setback::Outdated, &[1.6, 3.2, 6.4]);
    }
}
