//! The trait of checkers.

use lariat_sim::internals::{Event, Moment, Rest};

use crate::oracle::Oracle;

/// The findings of a checker, in words.
pub(crate) type Findings = Vec<String>;

/// One thing that must hold.
pub(crate) trait Check: Send {
    /// Returns its name, as violations and `docs/simulator.md` have it.
    fn name(&self) -> &'static str;

    /// Checks an event, which the oracle already has.
    fn saw(&mut self, _oracle: &Oracle, _moment: &Moment, _event: &Event) -> Findings {
        Vec::new()
    }

    /// Checks a process at rest: faults have ended and nothing is in progress.
    fn at_rest(&mut self, _oracle: &Oracle, _rest: &Rest<'_>) -> Findings {
        Vec::new()
    }
}
