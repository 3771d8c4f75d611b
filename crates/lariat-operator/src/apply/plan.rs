//! What applying a set would do.

use std::fmt;

use futures::FutureExt;
use lariat_core::{Gvk, ObjectKey, describe};
use serde_json::Value;

use super::desired::Desired;
use super::error::{ObjectError, ObjectFailure};
use super::meta::{Existing, Partial};
use super::object::bounded;
use super::resolve::Target;
use super::send::parse;
use super::set::Run;
use crate::diff::{Diff, FieldChange};
use crate::secrets::is_secret;

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

    fn add(&mut self, gvk: &Gvk, key: &ObjectKey, (action, diff): Planned) {
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

type Planned = (PlannedAction, Diff);

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

impl Run<'_> {
    /// Rehearses what is wanted.
    pub(super) async fn plan(&self, desired: Desired) -> SetPlan {
        let mut plan = SetPlan::default();
        let (targets, failures) = self.resolve(desired).await;
        failures.into_iter().for_each(|failure| plan.fail(failure));
        let calls = targets.iter().map(|target| self.rehearse(target).boxed());
        let results = bounded(calls.collect()).await;
        for (target, result) in targets.iter().zip(results) {
            match result {
                Ok(planned) => plan.add(target.gvk(), &target.key, planned),
                Err(error) => plan.fail(target.failed(error)),
            }
        }
        if plan.count(PlannedAction::Fail) == 0 {
            self.plan_prunes(&targets, &mut plan).await;
        }
        plan
    }

    async fn plan_prunes(&self, targets: &[Target], plan: &mut SetPlan) {
        let known = match self.known_extent().await {
            Ok(known) => known,
            Err(error) => return plan.fail(self.of_owner(error)),
        };
        let surplus = self.surplus(&known, targets).await;
        surplus
            .failures
            .into_iter()
            .for_each(|failure| plan.fail(failure));
        for each in surplus.objects {
            let gvk = each.resource.gvk();
            match self.would_delete(&each).await {
                Ok(true) => plan.add(gvk, &each.key, (PlannedAction::Prune, Diff::default())),
                Ok(false) => {}
                Err(error) if self.is_lost(gvk, &error, targets) => {}
                Err(error) => plan.fail(ObjectFailure::new(gvk, &each.key, error)),
            }
        }
    }

    async fn rehearse(&self, target: &Target) -> Result<Planned, ObjectError> {
        let (endpoint, name) = (self.endpoint(target), target.key.name());
        let before = endpoint.get(name).await?;
        let existing = match &before {
            Some(text) => Some(Existing::from(&parse::<Partial>("get", text)?.metadata)),
            None => None,
        };
        if let Some(existing) = &existing {
            self.claim(existing)?;
        }
        let params = self.params().dry_run();
        let after = match endpoint.apply(name, &target.object, &params).await {
            Err(ObjectError::Immutable { .. })
                if existing.as_ref().is_some_and(|is| self.replaces(is)) =>
            {
                return Ok((PlannedAction::Replace, Diff::default()));
            }
            answer => answer?,
        };
        let Some(before) = before else {
            return Ok((PlannedAction::Create, Diff::default()));
        };
        let (before, after) = (parse("get", &before)?, parse("apply", &after)?);
        let is_secret = is_secret(target.gvk());
        let (before, after) = (without_status(before), without_status(after));
        let diff = Diff::of(&before, &after, is_secret);
        let action = match diff.changes.is_empty() {
            true => PlannedAction::Unchanged,
            false => PlannedAction::Change,
        };
        Ok((action, diff))
    }
}

/// Takes out what is not for the owner of the set to say.
fn without_status(mut object: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    object
}
