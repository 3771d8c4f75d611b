//! The Machine of the first three stages: its switch is a field.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use lariat::kube::CustomResource;
use lariat::kube::api::{Patch, PatchParams};
use lariat::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Paint, print_action};

/// A machine with one switch.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "useless.container.training",
    version = "v1alpha1",
    kind = "Machine"
)]
#[kube(namespaced, status = "MachineStatus", derive = "PartialEq")]
#[kube(printcolumn(
    name = "Position",
    type_ = "string",
    json_path = ".spec.switchPosition"
))]
#[kube(printcolumn(name = "Seen", type_ = "date", json_path = ".status.seenAt"))]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// The position of the switch, for instance `up` or `down`.
    #[serde(default = "down")]
    pub switch_position: String,
}

/// The observed state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// When the operator saw the switch in another position than down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<MicroTime>,
    /// The generation in which it was seen: with the next one the switch was used again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

fn down() -> String {
    "down".to_owned()
}

impl Default for MachineSpec {
    fn default() -> Self {
        Self {
            switch_position: down(),
        }
    }
}

impl Machine {
    /// Returns whether there is nothing to do.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.spec.switch_position == "down"
    }
}

/// Puts the switch down, unless the machine has changed since it was read.
pub(super) async fn flip(cx: &Reconcile<Machine>, machines: &CachedApi<Machine>) -> HandlerResult {
    let patch = Patch::Merge(json!({
        // If another write was faster, this one conflicts, and the machine is reconciled again.
        "metadata": {"resourceVersion": cx.object().metadata.resource_version},
        "spec": {"switchPosition": "down"},
    }));
    match machines
        .patch(cx.key(), &PatchParams::default(), &patch)
        .await
    {
        Ok(_) => print_action(
            "Machine",
            cx.key().name(),
            Paint::Green,
            "flips its switch down",
        ),
        // It was deleted in the meantime, so there is nothing left to do.
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(Outcome::done())
}
