//! The coverage: how often each fault met each state of a process.
//!
//! A seed that finds nothing says little unless the interleavings that matter happened: a fault counts when it had an
//! effect, such as a request that a rule refused, and it counts once for each state the process was in at that moment.

mod state;
mod trouble;

use std::fmt;
use std::ops::AddAssign;

pub(crate) use state::{Doing, States};
pub(crate) use trouble::Trouble;

/// How often each trouble met each state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Coverage([[u64; Doing::ALL.len()]; Trouble::ALL.len()]);

impl Coverage {
    /// Counts what went wrong while a process was in some states.
    pub(crate) fn met(&mut self, trouble: Trouble, states: States) {
        for state in Doing::ALL {
            self.0[trouble as usize][state as usize] += u64::from(states.has(state));
        }
    }

    /// Returns what never met although it can.
    pub(crate) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for trouble in Trouble::ALL {
            for state in Doing::ALL {
                if self.0[trouble as usize][state as usize] == 0 && trouble.meets(state) {
                    missing.push(format!("{} × {}", trouble.name(), state.name()));
                }
            }
        }
        missing
    }
}

impl AddAssign<&Coverage> for Coverage {
    fn add_assign(&mut self, other: &Self) {
        for (all, more) in self.0.iter_mut().zip(&other.0) {
            for (all, more) in all.iter_mut().zip(more) {
                *all += more;
            }
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<19}", "")?;
        for state in Doing::ALL {
            write!(f, " {:>13}", state.name())?;
        }
        for trouble in Trouble::ALL {
            write!(f, "\n{:<19}", trouble.name())?;
            for state in Doing::ALL {
                if trouble.meets(state) {
                    write!(f, " {:>13}", self.0[trouble as usize][state as usize])?;
                } else {
                    write!(f, " {:>13}", "–")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Coverage, Doing, States, Trouble};

    #[test]
    fn a_trouble_counts_for_every_state_at_that_moment() {
        let mut coverage = Coverage::default();
        let mut states = States::default();
        states.set(Doing::Watching, true);
        states.set(Doing::Writing, true);
        states.set(Doing::Paused, false);
        coverage.met(Trouble::Cut, states);
        let mut both = coverage.clone();
        both += &coverage;
        let missing = both.missing();
        assert!(!missing.contains(&"server away × watching".to_owned()));
        assert!(!missing.contains(&"server away × writing".to_owned()));
        assert!(missing.contains(&"server away × paused".to_owned()));
        assert!(both.to_string().contains("            2"), "{both}");
    }

    #[test]
    fn what_cannot_meet_is_not_missing() {
        let missing = Coverage::default().missing();
        assert!(missing.contains(&"killed × filling".to_owned()));
        assert!(!missing.contains(&"paused × paused".to_owned()));
    }

    #[test]
    fn rows_and_columns_are_in_the_order_of_their_numbers() {
        for (at, trouble) in Trouble::ALL.into_iter().enumerate() {
            assert_eq!(trouble as usize, at);
        }
        for (at, state) in Doing::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, at);
        }
    }
}
