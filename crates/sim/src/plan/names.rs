//! Steps in words, with the names of kinds and processes.

use std::fmt;
use std::sync::Arc;

use super::{Fault, FaultKind, PlanStep, StepAction, Write};
use crate::stamp::Stamp;

/// The names behind the numbers of a plan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub(crate) processes: Arc<[Arc<str>]>,
    pub(crate) kinds: Arc<[String]>,
}

impl Names {
    /// Returns a step in words.
    pub(crate) fn show<'a>(&'a self, step: &'a PlanStep) -> impl fmt::Display + 'a {
        Shown { names: self, step }
    }

    fn process(&self, at: usize) -> &str {
        self.processes.get(at).map_or("no process", |name| name)
    }

    fn kind(&self, at: usize) -> &str {
        self.kinds.get(at).map_or("no kind", String::as_str)
    }
}

struct Shown<'a> {
    names: &'a Names,
    step: &'a PlanStep,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { names, step } = self;
        write!(f, "{} ", Stamp(step.at))?;
        match &step.what {
            StepAction::Write(Write { kind, name, what }) => {
                write!(f, "client: {} o{name}: {what:?}", names.kind(*kind))
            }
            StepAction::Fault(fault) => show_fault(f, fault, names),
            StepAction::Process { process, what } => {
                write!(f, "{}: {what:?}", names.process(*process))
            }
            StepAction::Command { process, what } => {
                write!(f, "{}: {what}", names.process(*process))
            }
        }
    }
}

fn show_fault(f: &mut fmt::Formatter<'_>, fault: &Fault, names: &Names) -> fmt::Result {
    write!(f, "fault: {:?}", fault.kind)?;
    // They are about the whole cluster.
    if matches!(
        fault.kind,
        FaultKind::CutWatches
            | FaultKind::EndWatches
            | FaultKind::Compact
            | FaultKind::Backup
            | FaultKind::DeleteLease(_)
    ) {
        return Ok(());
    }
    if let Some(process) = fault.process {
        write!(f, " for {}", names.process(process))?;
    }
    if let Some(verb) = fault.verb {
        write!(f, ", {verb}")?;
    }
    if let Some(resource) = fault.resource {
        write!(f, ", {}", names.kind(resource))?;
    }
    // Plans use this and more for faults that only their time ends.
    if fault.times < 1000 {
        write!(f, ", {} times", fault.times)?;
    }
    write!(f, ", for {}", Stamp(fault.lasts))
}
