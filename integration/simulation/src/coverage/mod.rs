//! The coverage: how often each fault met each state of a process.
//!
//! A seed that finds nothing says little unless the interleavings that matter happened: a fault counts when it had an
//! effect, such as a request that a rule refused, and it counts once for each state the process was in at that moment.

mod fault_class;
mod state;

use std::fmt;
use std::ops::AddAssign;

pub(crate) use fault_class::FaultClass;
pub(crate) use state::{ProcessState, ProcessStates};

/// The number of times that each fault met each state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage([[u64; ProcessState::ALL.len()]; FaultClass::ALL.len()]);

impl Coverage {
    /// Counts a fault that a process met in some states.
    pub(crate) fn met(&mut self, fault: FaultClass, states: ProcessStates) {
        for state in ProcessState::ALL {
            self.0[fault as usize][state as usize] += u64::from(states.has(state));
        }
    }

    /// Returns the possible pairs that never met.
    pub(crate) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for fault in FaultClass::ALL {
            for state in ProcessState::ALL {
                if self.0[fault as usize][state as usize] == 0 && fault.meets(state) {
                    missing.push(format!("{} × {}", fault.name(), state.name()));
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
        for state in ProcessState::ALL {
            write!(f, " {:>13}", state.name())?;
        }
        for fault in FaultClass::ALL {
            write!(f, "\n{:<19}", fault.name())?;
            for state in ProcessState::ALL {
                if fault.meets(state) {
                    write!(f, " {:>13}", self.0[fault as usize][state as usize])?;
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
    use super::{Coverage, FaultClass, ProcessState, ProcessStates};

    #[test]
    fn a_fault_counts_for_every_state_at_that_moment() {
        let mut coverage = Coverage::default();
        let mut states = ProcessStates::default();
        states.set(ProcessState::Watching, true);
        states.set(ProcessState::Writing, true);
        states.set(ProcessState::Paused, false);
        coverage.met(FaultClass::Cut, states);
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
        for (at, fault) in FaultClass::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, at);
        }
        for (at, state) in ProcessState::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, at);
        }
    }
}
