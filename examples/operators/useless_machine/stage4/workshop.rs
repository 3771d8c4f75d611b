//! The reconciler of machines.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use lariat::kube::ResourceExt;
use lariat::kube::api::{Patch, PatchParams};
use lariat::operator::{ApiError, Rule};
use lariat::prelude::*;
use serde_json::{Value, json};

use super::kinds::{MACHINE, Machine, MachineStatus, Switch, SwitchStatus};
use crate::useless_machine::Pace;
use crate::{Paint, print_action};

/// Registers the reconciler of machines.
///
/// # Errors
///
/// Machines have a handler of this name already.
pub fn register(operator: &Operator, pace: &Pace) -> anyhow::Result<()> {
    let factory = operator.factory();
    let workshop = Arc::new(Workshop {
        machines: operator.api(),
        switches: operator.api(),
        pace: pace.clone(),
    });
    let switches = factory.for_object::<Switch>();
    operator
        .reconciler("machines", &factory.for_object::<Machine>())
        // When a label changes, both the old and the new machine are reconciled.
        .watches(&switches, Relation::label(MACHINE))
        // For `operator.cluster_role()`; reading both kinds is known.
        .writes_status()
        .needs(Rule::of(&switches).verbs(["create", "delete", "patch"]))
        .needs(Rule::status(&switches))
        .register(move |cx| {
            let workshop = Arc::clone(&workshop);
            async move { workshop.reconcile(&cx).await }
        })?;
    Ok(())
}

/// The state of the reconciler.
pub(super) struct Workshop {
    pub(super) machines: CachedApi<Machine>,
    pub(super) switches: CachedApi<Switch>,
    pace: Pace,
}

/// A switch to flip, and when it was first seen up.
type Next = (Timestamp, Arc<Switch>);

impl Workshop {
    async fn reconcile(&self, cx: &Reconcile<Machine>) -> HandlerResult {
        let switches = self.claim(cx).await?;
        let switches = self.scale(cx, switches).await?;
        let first_letter = |switch: &Arc<Switch>| switch.spec.position.chars().next();
        let positions = switches.iter().filter_map(first_letter).collect();
        let next = self.next(&switches).await?;
        let flipped_at = cx
            .object()
            .status
            .as_ref()
            .and_then(|status| status.flipped_at.clone());
        let shown = cx.object().status.as_ref().map(|status| &status.positions);
        if shown != Some(&positions) {
            print_action("Machine", cx.key().name(), Paint::Bold, &positions);
        }
        let mut status = MachineStatus {
            positions,
            flipped_at,
        };

        let Some((seen, switch)) = next else {
            cx.set_status(&status).await?;
            return Ok(Outcome::done());
        };
        // The switch was up long enough, and the machine's last flip is long enough ago.
        let rested = self.pace.noted(status.flipped_at.as_ref());
        let rested = rested.map_or(Duration::ZERO, |last| self.pace.left(last));
        let wait = self.pace.left(seen).max(rested);
        if !wait.is_zero() {
            cx.set_status(&status).await?;
            return Ok(Outcome::requeue_after(wait));
        }
        // Recorded before the flip: if the operator ends between the two, the next flip is late rather than early.
        status.flipped_at = Some(MicroTime(self.pace.now()));
        cx.set_status(&status).await?;
        self.flip(&switch).await
    }

    /// Returns the switch that has been up for longest, and records when new ones were seen.
    async fn next(&self, switches: &[Arc<Switch>]) -> Result<Option<Next>, ApiError> {
        let mut next: Option<Next> = None;
        for switch in switches.iter().filter(|switch| !switch.is_down()) {
            let (seen, switch) = match self.pace.noted(switch.seen_at()) {
                Some(seen) => (seen, Arc::clone(switch)),
                None => match self.note(switch).await? {
                    Some(noted) => noted,
                    None => continue,
                },
            };
            if next.as_ref().is_none_or(|(first, _)| seen < *first) {
                next = Some((seen, switch));
            }
        }
        Ok(next)
    }

    async fn note(&self, switch: &Switch) -> Result<Option<Next>, ApiError> {
        let now = self.pace.now();
        let status = SwitchStatus {
            seen_at: Some(MicroTime(now)),
            observed_generation: switch.metadata.generation,
        };
        let (key, params) = (switch.key(), PatchParams::default());
        let patch = Patch::Merge(json!({"status": status}));
        let noted = self.switches.patch_status(&key, &params, &patch).await;
        Ok(unless_gone(noted)?.map(|switch| (now, switch)))
    }

    // The write is a change of the switch, which leads to the next call.
    async fn flip(&self, switch: &Switch) -> HandlerResult {
        if self
            .change(switch, json!({"spec": {"position": "down"}}))
            .await?
            .is_some()
        {
            print_action("Switch", switch.name_any(), Paint::Green, "is flipped down");
        }
        Ok(Outcome::done())
    }

    /// Merges a patch into a switch if that is unchanged since it was read; else it conflicts, and is retried.
    pub(super) async fn change(
        &self,
        switch: &Switch,
        mut patch: Value,
    ) -> Result<Option<Arc<Switch>>, ApiError> {
        patch["metadata"]["resourceVersion"] = json!(switch.metadata.resource_version);
        let (key, params) = (switch.key(), PatchParams::default());
        unless_gone(
            self.switches
                .patch(&key, &params, &Patch::Merge(patch))
                .await,
        )
    }
}

/// Returns the written switch, or `None` if it was deleted in the meantime.
pub(super) fn unless_gone(
    written: Result<Switch, ApiError>,
) -> Result<Option<Arc<Switch>>, ApiError> {
    match written {
        Ok(switch) => Ok(Some(Arc::new(switch))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
