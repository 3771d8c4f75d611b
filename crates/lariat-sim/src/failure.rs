//! A run in which something did not hold.

use std::fmt;

use crate::plan::{Names, Step};
use crate::record::{Trace, Violation};

/// How many lines of the trace are shown before the first violation, and after it.
const BEFORE: usize = 60;
const AFTER: usize = 5;

/// A run in which something that must hold did not: what, after which plan, and the trace.
#[derive(Debug, Clone)]
pub struct Failure {
    pub(crate) seed: u64,
    pub(crate) violations: Vec<Violation>,
    pub(crate) plan: Vec<Step>,
    pub(crate) steps_before: usize,
    pub(crate) names: Names,
    pub(crate) trace: Trace,
}

impl Failure {
    /// Returns the seed that leads to it.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns what does not hold, in the order in which it was noticed.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Returns what happened, event by event.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns how many steps the plan has after shrinking, and had before.
    #[must_use]
    pub fn steps(&self) -> (usize, usize) {
        (self.plan.len(), self.steps_before)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {} of its checks failed",
            self.seed,
            self.violations.len()
        )?;
        for violation in self.violations.iter().take(10) {
            writeln!(f, "  {violation}")?;
        }
        writeln!(
            f,
            "plan: {} steps, shrunk from {}",
            self.plan.len(),
            self.steps_before
        )?;
        for step in &self.plan {
            writeln!(f, "  {}", self.names.show(step))?;
        }
        writeln!(f, "trace up to the first violation:")?;
        let lines: Vec<&str> = self.trace.lines().collect();
        let at = lines.iter().position(|line| line.contains(" VIOLATION "));
        let at = at.unwrap_or(lines.len());
        let shown = at.saturating_sub(BEFORE)..lines.len().min(at + AFTER);
        for line in &lines[shown] {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
