//! The overview: the program, and everything it runs.

use serde::{Deserialize, Serialize};

use super::cache::Cache;
use super::controller::{Controller, HotLoop};
use super::state::{Guard, Health, Lease, Shards};

/// The state of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// The program.
    pub program: Program,
    /// Its health.
    pub health: Health,
    /// What the user may do.
    pub allowed: Allowed,
    /// The controllers in use, sorted by context and kind.
    pub controllers: Vec<Controller>,
    /// The caches, with and without a controller, sorted likewise.
    pub caches: Vec<Cache>,
    /// The leases that the process takes part in.
    pub leases: Vec<Lease>,
    /// The shards, if the factory is sharded.
    pub shards: Vec<Shards>,
    /// The guards of operators.
    pub guards: Vec<Guard>,
    /// The keys in hot loops, of all kinds.
    pub hot_loops: Vec<HotLoop>,
    /// The number of writes that operators in plan mode would send; `None` without such an operator.
    pub planned: Option<usize>,
}

/// The program that serves the console.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Program {
    /// The name.
    pub name: String,
    /// The version, if the program has set one.
    pub version: Option<String>,
    /// When it began to serve.
    pub started: String,
    /// How long ago that was, in seconds.
    pub uptime: f64,
    /// The present time of the program.
    pub now: String,
    /// The log filter, if the console can change it.
    pub log_filter: Option<String>,
}

/// What the user of a request may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Allowed {
    /// The name of the user.
    pub user: String,
    /// Whether actions are enabled and allowed.
    pub actions: bool,
}
