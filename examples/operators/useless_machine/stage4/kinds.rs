//! The kinds of stage 4: a Machine with Switches as separate objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use lariat::kube::{CustomResource, ResourceExt};
use lariat::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A machine with some number of switches.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "useless.container.training",
    version = "v1alpha1",
    kind = "Machine"
)]
#[kube(namespaced, status = "MachineStatus", derive = "PartialEq")]
// Its switches carry the name as a label.
#[kube(validation = Rule::new("self.metadata.name.size() <= 63").message("the name is longer than a label can be"))]
#[kube(printcolumn(name = "Switches", type_ = "integer", json_path = ".spec.switches"))]
#[kube(printcolumn(name = "Positions", type_ = "string", json_path = ".status.positions"))]
pub struct MachineSpec {
    /// The number of switches.
    #[schemars(range(min = 1, max = 100))]
    pub switches: i32,
}

/// The observed state of its switches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// The first letter of each position, in the order of the names.
    pub positions: String,
    /// When the machine flipped a switch last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flipped_at: Option<MicroTime>,
}

/// A switch of the machine that its label `machine` names.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "useless.container.training",
    version = "v1alpha1",
    kind = "Switch"
)]
#[kube(
    plural = "switches",
    namespaced,
    status = "SwitchStatus",
    derive = "PartialEq"
)]
#[kube(printcolumn(name = "Position", type_ = "string", json_path = ".spec.position"))]
#[kube(printcolumn(name = "Seen", type_ = "date", json_path = ".status.seenAt"))]
pub struct SwitchSpec {
    /// Its position, for instance `up` or `down`.
    #[schemars(length(min = 1))]
    pub position: String,
}

/// The observed state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SwitchStatus {
    /// When the operator saw the switch in another position than down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<MicroTime>,
    /// The generation in which it was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The label that names a switch's machine.
pub const MACHINE: &str = "machine";

impl Switch {
    /// Returns whether there is nothing to do.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.spec.position == "down"
    }

    /// Returns whether it is being deleted.
    #[must_use]
    pub fn is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns the name of the machine it should belong to.
    #[must_use]
    pub fn machine(&self) -> Option<&str> {
        self.labels().get(MACHINE).map(String::as_str)
    }

    /// Returns its key.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(&self.namespace().unwrap_or_default(), &self.name_any())
    }

    /// Returns when it was seen in the present position; none if it was used again since.
    #[must_use]
    pub fn seen_at(&self) -> Option<&MicroTime> {
        let status = self.status.as_ref();
        let status = status.filter(|status| status.observed_generation == self.metadata.generation);
        status?.seen_at.as_ref()
    }
}
