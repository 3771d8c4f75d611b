//! Health, leases, shards, guards and plans.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The health of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Whether `/healthz` responds with 200.
    pub healthy: bool,
    /// Whether `/readyz` responds with 200.
    pub ready: bool,
    /// The checks, in the order of `/readyz?verbose`.
    pub checks: Vec<Check>,
}

/// A health check, with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// The name.
    pub name: String,
    /// Whether the check passes.
    pub ok: bool,
    /// Whether the check counts for `/healthz` too, and not only for `/readyz`.
    pub liveness: bool,
    /// Whether the check counts for `/readyz`; if not, it is for people only.
    pub readiness: bool,
    /// The reason of a failure, or a note.
    pub message: Option<String>,
}

/// The lease of an election or a ring of the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// The context id of the factory.
    pub context: String,
    /// The namespace and the name of the lease.
    pub lease: String,
    /// The identity of this process.
    pub identity: String,
    /// `leading`, `standby` or `ended`.
    pub state: String,
    /// The holder, if it is known.
    pub holder: Option<String>,
    /// The number of lease transitions, while this process leads.
    pub epoch: Option<i32>,
    /// How often this process acquired the lease.
    pub acquired: u64,
    /// How often this process renewed the lease.
    pub renewals: u64,
    /// How many renewals had to read the lease first.
    pub slow_renewals: u64,
}

/// The share of a sharded process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Shards {
    /// The context id of the factory.
    pub context: String,
    /// The number of members that share the keys.
    pub members: usize,
    /// Whether this process is a member.
    pub member: bool,
}

/// The guard of a reconciler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Guard {
    /// The context id of the operator's factory.
    pub context: String,
    /// The operator.
    pub operator: String,
    /// The reconcilers that the guard applies to.
    pub reconcilers: Vec<String>,
    /// The budgets, as text, such as `10 deletes in 60s`.
    pub budgets: Vec<String>,
    /// Whether the guard has tripped.
    pub tripped: bool,
    /// The budget that was exceeded, and the write that exceeded it.
    pub reason: Option<String>,
    /// The number of refused writes.
    pub refused: u64,
}

/// A reference to a guard: what the overview says of it, without its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GuardRef {
    /// The context id of the operator's factory.
    pub context: String,
    /// The operator.
    pub operator: String,
    /// The reconcilers that the guard applies to.
    pub reconcilers: Vec<String>,
    /// The budgets, as text.
    pub budgets: Vec<String>,
}

impl Guard {
    /// Returns a reference to the guard.
    #[must_use]
    pub fn reference(&self) -> GuardRef {
        GuardRef {
            context: self.context.clone(),
            operator: self.operator.clone(),
            reconcilers: self.reconcilers.clone(),
            budgets: self.budgets.clone(),
        }
    }
}

/// As in messages: `maps, pods in reaper`.
impl fmt::Display for GuardRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.reconcilers.join(", "), self.operator)
    }
}

/// The writes that operators in plan mode would send.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The writes, in the order of their first occurrence; at most a thousand.
    pub writes: Vec<PlannedWrite>,
    /// The number of all writes.
    pub total: usize,
}

/// A write that would be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlannedWrite {
    /// The operator.
    pub operator: String,
    /// The write, as a sentence without values of fields.
    pub text: String,
    /// The error of the dry run, if the API server refused it.
    pub refused: Option<String>,
}
