//! What applying a set would do.

use std::fmt;

use lariat_core::{Gvk, ObjectKey, describe};

use super::error::{ObjectError, ObjectFailure};
use crate::diff::{Diff, FieldChange};

/// What applying a set would do, object by object, in the order in which it would be done. Its `Display` is for
/// people: a line for each object, and one for each field that would change.
#[derive(Debug, Default)]
pub struct SetPlan {
    steps: Vec<PlanStep>,
}

/// What would happen to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlannedAction {
    /// It does not exist.
    Create,
    /// Fields of it differ.
    Change,
    /// Fields that cannot be changed differ: it would be deleted and created again.
    Replace,
    /// It is as it should be.
    Unchanged,
    /// It is not wanted any more.
    Prune,
    /// It would be refused. Nothing is pruned then.
    Fail,
}

/// An object, and what would happen to it.
#[derive(Debug)]
#[non_exhaustive]
pub struct PlanStep {
    /// The kind.
    pub gvk: Gvk,
    /// The key; `None` if a kind could not be looked through for what is to be pruned.
    pub key: Option<ObjectKey>,
    /// What would happen.
    pub action: PlannedAction,
    /// The fields that would change, if it exists and stays; the first 256 of them. What is in a Secret is hidden.
    pub changes: Vec<FieldChange>,
    /// How many more fields would change.
    pub changes_left_out: usize,
    /// Why it would be refused.
    pub error: Option<ObjectError>,
}

impl SetPlan {
    /// Returns the steps.
    #[must_use]
    pub fn steps(&self) -> &[PlanStep] {
        &self.steps
    }

    /// Returns to how many objects something would happen.
    #[must_use]
    pub fn count(&self, action: PlannedAction) -> usize {
        let steps = self.steps.iter();
        steps.filter(|step| step.action == action).count()
    }

    /// Returns whether everything is as it should be.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.count(PlannedAction::Unchanged) == self.steps.len()
    }

    pub(super) fn fail(&mut self, failure: ObjectFailure) {
        let ObjectFailure { gvk, key, error } = failure;
        self.steps.push(PlanStep {
            gvk,
            key,
            action: PlannedAction::Fail,
            changes: Vec::new(),
            changes_left_out: 0,
            error: Some(error),
        });
    }

    pub(super) fn add(&mut self, gvk: &Gvk, key: &ObjectKey, planned: Planned) {
        let Planned { action, diff } = planned;
        self.steps.push(PlanStep {
            gvk: gvk.clone(),
            key: Some(key.clone()),
            action,
            changes: diff.changes,
            changes_left_out: diff.left_out,
            error: None,
        });
    }
}

/// What would happen to an object, and which of its fields would change.
pub(super) struct Planned {
    pub(super) action: PlannedAction,
    pub(super) diff: Diff,
}

impl From<PlannedAction> for Planned {
    fn from(action: PlannedAction) -> Self {
        let diff = Diff::default();
        Self { action, diff }
    }
}

impl fmt::Display for PlannedAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Replace => "replace",
            Self::Unchanged => "unchanged",
            Self::Prune => "prune",
            Self::Fail => "fail",
        })
    }
}

impl fmt::Display for SetPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for step in &self.steps {
            write!(f, "{before}{:<9} {}", step.action, step.gvk)?;
            if let Some(key) = &step.key {
                write!(f, " {key}")?;
            }
            if let Some(error) = &step.error {
                write!(f, ": {}", describe(error))?;
            }
            for change in &step.changes {
                write!(f, "\n            {change}")?;
            }
            if step.changes_left_out > 0 {
                let more = step.changes_left_out;
                write!(f, "\n            and {more} more fields")?;
            }
            before = "\n";
        }
        Ok(())
    }
}
