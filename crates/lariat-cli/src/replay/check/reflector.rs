//! The ends of lists and watches, judged by today's policy.

use std::time::{Duration, Instant};

use lariat_cache::{Attempt, ReflectorPolicy};
use lariat_flight::{NextStep, Reflected};

use super::outcome::Outcome;

/// Today's policy; `None` until the state of the recorded one is known.
#[derive(Default)]
pub(super) struct Reflector {
    policy: Option<ReflectorPolicy>,
    ended: Option<(Attempt, Instant)>,
}

impl Reflector {
    /// Takes a step; the decision after an end is compared.
    pub(super) fn take(&mut self, step: &Reflected<'_>, at: Instant) -> Outcome {
        match step {
            Reflected::Began {
                streams, verified, ..
            } => self.policy = Some(ReflectorPolicy::new(*streams, *verified)),
            Reflected::Doubted {} => self.policy.iter_mut().for_each(ReflectorPolicy::suspect),
            Reflected::Loaded { .. } => self.policy.iter_mut().for_each(ReflectorPolicy::loaded),
            Reflected::Ended {
                stage,
                end,
                received,
                lasted,
                state,
            } => {
                let attempt = Attempt {
                    stage: *stage,
                    end: *end,
                    received: *received,
                    lasted: *lasted,
                };
                self.ended = Some((attempt, at));
                if self.policy.is_none() {
                    // A recording that begins in the middle can be compared from its first end on.
                    self.policy = ReflectorPolicy::from_state(state, at);
                }
            }
            Reflected::Decided {
                next,
                delay,
                jitter,
            } => return self.decided(*next, *delay, f64::from_bits(*jitter)),
            _ => {}
        }
        Outcome::Taken
    }

    fn decided(&mut self, next: NextStep, delay: Duration, jitter: f64) -> Outcome {
        // Taken, so that a decision whose end is missing is not compared with an older end.
        let (Some(policy), Some((attempt, at))) = (&mut self.policy, self.ended.take()) else {
            return Outcome::Unknown;
        };
        // A NaN comes from damage, and no pause depends on it.
        let jitter = if jitter.is_finite() {
            jitter.clamp(0.0, 1.0)
        } else {
            0.0
        };
        // The random number was recorded with the decision, so the delays must be equal to the last bit.
        let decision = policy.ended(&attempt, at, jitter);
        if (decision.next, decision.delay) == (next, delay) {
            return Outcome::Same;
        }
        let today = described(decision.next, decision.delay);
        Outcome::Differs(described(next, delay), today)
    }
}

fn described(next: NextStep, delay: Duration) -> String {
    format!("after {delay:?} {}", next.as_str())
}
