//! The plan of an apply: what it would do to each object.

use std::fmt;

use lariat_core::{Gvk, ObjectKey, describe};

use super::error::{ApplyError, ObjectError, ObjectFailure};
use super::report::{Action, Applied, AppliedObject};
use super::waiting::Waiting;
use crate::diff::FieldChange;

/// What applying a set would do, object by object, in order.
///
/// Its `Display` has a line for each object, for each changed field, and for each part that waits.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use lariat::operator::PlannedAction;
/// # use lariat::{Desired, Reconcile};
/// # async fn example(cx: Reconcile<ConfigMap>, desired: Desired) {
/// let plan = cx.apply_set("main").plan(desired).await;
/// if plan.count(PlannedAction::Prune) > 10 {
///     println!("too many deletions:\n{plan}");
/// }
/// # }
/// ```
#[derive(Debug, Default)]
pub struct SetPlan {
    steps: Vec<PlanStep>,
    waiting: Vec<Waiting>,
}

/// The action that is planned for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlannedAction {
    /// It does not exist, and would be created.
    Create,
    /// Some fields differ, and would be changed.
    Change,
    /// Immutable fields differ: it would be deleted and created again.
    Replace,
    /// It is as wanted; nothing would be sent that changes it.
    Unchanged,
    /// It is no longer wanted, and would be deleted.
    Prune,
    /// It would fail; nothing would be pruned.
    Fail,
}

/// A step of a plan: one object, and what would be done to it.
#[derive(Debug)]
#[non_exhaustive]
pub struct PlanStep {
    /// The kind.
    pub gvk: Gvk,
    /// The key; `None` if a kind could not be searched for objects to prune.
    pub key: Option<ObjectKey>,
    /// What would be done.
    pub action: PlannedAction,
    /// The changed fields of an existing object, at most 256.
    ///
    /// Values of Secrets are hidden.
    pub changes: Vec<FieldChange>,
    /// The number of changed fields beyond those.
    pub changes_left_out: usize,
    /// The error, if the step would fail.
    pub error: Option<ObjectError>,
}

impl SetPlan {
    /// Returns the steps, in the order in which they would be taken.
    #[must_use]
    pub fn steps(&self) -> &[PlanStep] {
        &self.steps
    }

    /// Returns the number of objects with this action.
    #[must_use]
    pub fn count(&self, action: PlannedAction) -> usize {
        let steps = self.steps.iter();
        steps.filter(|step| step.action == action).count()
    }

    /// Returns whether every object is as wanted.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.count(PlannedAction::Unchanged) == self.steps.len()
    }

    /// Returns the parts of the set that would be left for a later call.
    ///
    /// These are steps whose precondition does not hold, and the steps after them. Nothing would be pruned while a step waits.
    #[must_use]
    pub fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    fn fail(&mut self, failure: ObjectFailure) {
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

    fn add(&mut self, object: AppliedObject) {
        let AppliedObject {
            gvk,
            key,
            action,
            diff,
            ..
        } = object;
        self.steps.push(PlanStep {
            gvk,
            key: Some(key),
            action: action.into(),
            changes: diff.changes,
            changes_left_out: diff.left_out,
            error: None,
        });
    }
}

impl From<Applied> for SetPlan {
    fn from(applied: Applied) -> Self {
        let mut plan = Self {
            steps: Vec::new(),
            waiting: applied.waiting,
        };
        applied.objects.into_iter().for_each(|each| plan.add(each));
        plan
    }
}

impl From<ApplyError> for SetPlan {
    fn from(error: ApplyError) -> Self {
        let (applied, failures) = error.into_parts();
        let mut plan = Self::from(applied);
        failures.into_iter().for_each(|each| plan.fail(each));
        plan
    }
}

impl From<Action> for PlannedAction {
    fn from(action: Action) -> Self {
        match action {
            Action::Created => Self::Create,
            Action::Changed => Self::Change,
            Action::Replaced => Self::Replace,
            Action::Unchanged => Self::Unchanged,
            Action::Pruned => Self::Prune,
        }
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
            // Nine letters are the longest action, `unchanged`.
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
        for each in &self.waiting {
            write!(f, "{before}wait      {each}")?;
            before = "\n";
        }
        Ok(())
    }
}
