//! Health, leases, shards, guards and plans.

use serde::{Deserialize, Serialize};

/// The health of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Whether `/healthz` answers 200.
    pub healthy: bool,
    /// Whether `/readyz` answers 200.
    pub ready: bool,
    /// The checks, in the order of `/readyz?verbose`.
    pub checks: Vec<Check>,
}

/// A check of the health.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Its name.
    pub name: String,
    /// Whether it passes.
    pub ok: bool,
    /// Whether it counts for `/healthz` too, and not only for `/readyz`.
    pub liveness: bool,
    /// What is wrong, or what is noteworthy.
    pub message: Option<String>,
}

/// A lease that the process takes part in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// The context id of the factory.
    pub context: String,
    /// Namespace and name of the lease.
    pub lease: String,
    /// The identity of this process.
    pub identity: String,
    /// `leading`, `standby` or `ended`.
    pub state: String,
    /// The holder, as far as it is known.
    pub holder: Option<String>,
    /// The number of transitions, while it leads.
    pub epoch: Option<i32>,
    /// How often this process acquired the lease.
    pub acquired: u64,
    /// How often it renewed the lease.
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
    /// Whether this process is one of them.
    pub member: bool,
}

/// The guard of a reconciler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Guard {
    /// The operator.
    pub operator: String,
    /// The reconcilers that it guards.
    pub reconcilers: Vec<String>,
    /// The budgets, as text, such as `10 deletes in 60s`.
    pub budgets: Vec<String>,
    /// Whether it has tripped.
    pub tripped: bool,
    /// The budget that was exceeded, and by which write.
    pub reason: Option<String>,
    /// The number of refused writes.
    pub refused: u64,
    /// The number to send in [`Action::ResetGuard`](super::Action::ResetGuard).
    pub number: usize,
}

/// What operators in plan mode would write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The writes, in the order of their first occurrence; at most a thousand.
    pub writes: Vec<PlannedWrite>,
    /// The number of writes, those left out included.
    pub total: usize,
}

/// A write that would be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlannedWrite {
    /// The operator.
    pub operator: String,
    /// What it does, as a sentence without values of fields.
    pub text: String,
    /// The error of the dry run, if the API server refused it.
    pub refused: Option<String>,
}
