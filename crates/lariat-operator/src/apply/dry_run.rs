//! Plans the apply of a set by dry runs.

use futures::FutureExt;
use serde_json::Value;

use super::desired::Desired;
use super::error::{ObjectError, ObjectFailure};
use super::meta::{Existing, Partial};
use super::plan::{Planned, PlannedAction, SetPlan};
use super::resolve::Target;
use super::run::{Run, bounded};
use super::send::parse;
use crate::diff::Diff;
use crate::wire::is_secret;

impl Run<'_> {
    /// Runs each wanted object dry, and lists the objects that would be pruned.
    pub(super) async fn plan(&self, desired: Desired) -> SetPlan {
        let mut plan = SetPlan::default();
        let (_, targets, failures) = self.resolve(desired).await;
        failures.into_iter().for_each(|failure| plan.fail(failure));
        let calls = targets.iter().map(|target| self.dry_run(target).boxed());
        let results = bounded(calls.collect()).await;
        for (target, result) in targets.iter().zip(results) {
            match result {
                Ok(planned) => plan.add(target.gvk(), &target.key, planned),
                Err(error) => plan.fail(target.failed(error)),
            }
        }
        // An apply prunes nothing if an object fails, and neither does its plan.
        if plan.count(PlannedAction::Fail) == 0 {
            self.plan_prunes(&targets, &mut plan).await;
        }
        plan
    }

    /// Adds the objects to a plan that would be pruned.
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
                Ok(true) => plan.add(gvk, &each.key, PlannedAction::Prune.into()),
                Ok(false) => {}
                Err(error) if self.is_dropped_kind(gvk, &error, targets) => {}
                Err(error) => plan.fail(ObjectFailure::new(gvk, &each.key, error)),
            }
        }
    }

    /// Reads an object, applies it as a dry run, and compares the two.
    async fn dry_run(&self, target: &Target) -> Result<Planned, ObjectError> {
        let (endpoint, name) = (
            self.endpoint(&target.resource, &target.key),
            target.key.name(),
        );
        let before = endpoint.get(name).await?;
        let existing = match &before {
            Some(text) => Some(Existing::from(&parse::<Partial>("get", text)?.metadata)),
            None => None,
        };
        if let Some(existing) = &existing {
            // The same checks as in an apply, so that the plan shows the same failures.
            self.claim(existing, target)?;
            if target.options.create_only {
                return Ok(PlannedAction::Unchanged.into());
            }
        }
        // The dry run goes through admission like the real apply, so quotas and webhooks show their errors in the plan.
        let params = self.params(target).dry_run();
        let after = match endpoint.apply(name, &target.object, &params).await {
            Err(ObjectError::Immutable { .. })
                if existing
                    .as_ref()
                    .is_some_and(|is| self.replaces(is, target)) =>
            {
                return Ok(PlannedAction::Replace.into());
            }
            answer => answer?,
        };
        let Some(before) = before else {
            return Ok(PlannedAction::Create.into());
            // The dry run answers with the object after admission, defaults and the merge of fields. The difference to
            // the object before is the exact change, which could not be computed from the wanted object.
        };
        let (before, after) = (parse("get", &before)?, parse("apply", &after)?);
        let is_secret = is_secret(target.gvk());
        let (before, after) = (without_status(before), without_status(after));
        // The status is left out on both sides: controllers change it between the read and the dry run.
        let diff = Diff::of(&before, &after, is_secret);
        let action = if diff.changes.is_empty() {
            PlannedAction::Unchanged
        } else {
            PlannedAction::Change
        };
        Ok(Planned { action, diff })
    }
}

/// Removes the status, which an apply does not change.
fn without_status(mut object: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    object
}
