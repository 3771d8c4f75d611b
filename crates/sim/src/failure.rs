//! The result of a run in which a check failed.

use std::fmt;

use crate::plan::{Names, PlanStep};
use crate::record::Violation;
use crate::stamp::Stamp;
use crate::trace::Trace;
use crate::trace_filter::{Kind, TraceFilter};

/// The largest numbers of lines of the trace and of violations that are shown.
const LINES: usize = 80;
const VIOLATIONS: usize = 5;

/// A failed run: its violations, the plan, and the trace.
///
/// It displays as a report: what does not hold, the plan (reduced if the simulation
/// [shrinks](crate::Simulation::shrinks)), and the lines of the trace about the object of the first violation. All
/// times are virtual, since the start of the run.
///
/// ```
/// use lariat::Gvk;
/// use lariat::sim::{Chaos, Objects, Simulation};
/// use std::time::Duration;
///
/// let failure = Simulation::new(7)
///     .objects(Objects::new(Gvk::new("", "v1", "ConfigMap"), "configmaps"))
///     .chaos(Chaos::default().duration(Duration::from_secs(5)))
///     .program("broken", |_| async { Err("no configuration".into()) })
///     .shrinks(false)
///     .run()
///     .unwrap_err();
/// assert!(!failure.violations().is_empty());
/// assert!(failure.to_string().starts_with("seed 7 fails"));
/// ```
#[derive(Debug, Clone)]
pub struct Failure {
    pub(crate) seed: u64,
    pub(crate) violations: Vec<Violation>,
    pub(crate) plan: Vec<PlanStep>,
    pub(crate) steps_before: usize,
    pub(crate) names: Names,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) trace: Trace,
}

impl Failure {
    /// Returns the seed that leads to it.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the violations, in order of detection; never empty.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Returns the trace of the run, event by event.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the numbers of steps of the plan after and before shrinking.
    #[must_use]
    pub fn steps(&self) -> (usize, usize) {
        (self.plan.len(), self.steps_before)
    }

    fn show_violations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Violation { check, at, what } in self.violations.iter().take(VIOLATIONS) {
            writeln!(f, "{:>12} {check}: {what}", Stamp(*at).to_string())?;
        }
        match self.violations.len().checked_sub(VIOLATIONS) {
            Some(more @ 1..) => writeln!(f, "{:>12} and {more} more", ""),
            _ => Ok(()),
        }
    }

    fn show_plan(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (now, before) = self.steps();
        match now {
            0 => return writeln!(f, "\nplan: none of {before} steps is needed for it"),
            _ if now < before => writeln!(f, "\nplan: {now} of {before} steps lead to it")?,
            _ => writeln!(f, "\nplan: {now} steps")?,
        }
        for step in &self.plan {
            let step = self.names.show(step).to_string();
            let (stamp, what) = step.split_once(' ').unwrap_or(("", &step));
            writeln!(f, "{stamp:>12} {what}")?;
        }
        Ok(())
    }

    fn show_trace(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.violations.first();
        let filter = first.and_then(|violation| TraceFilter::of(&violation.what, &self.kinds));
        let until = self
            .trace
            .lines()
            // The lines after the first violation are of the end of the run, and would push out those that led to it.
            .position(|line| line.contains(" VIOLATION "));
        let lines = self
            .trace
            .lines()
            .take(until.map_or(usize::MAX, |at| at + 1));
        let (about, lines) = match &filter {
            Some(filter) => (format!(" of {}", filter.name()), filter.lines(lines)),
            None => (String::new(), lines.collect()),
        };
        let shown = &lines[lines.len().saturating_sub(LINES)..];
        let (shown_lines, all) = (shown.len(), self.trace.count());
        writeln!(f, "\ntrace{about}: {shown_lines} of {all} lines")?;
        shown.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} fails", self.seed)?;
        self.show_violations(f)?;
        self.show_plan(f)?;
        self.show_trace(f)
    }
}

impl std::error::Error for Failure {}
