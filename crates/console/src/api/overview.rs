//! The overview of a program.

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
    /// The health of the program.
    pub health: Health,
    /// The permissions of the user.
    pub allowed: Allowed,
    /// The controllers in use, sorted by context and kind.
    pub controllers: Vec<Controller>,
    /// The caches, with and without a controller, sorted by context and kind.
    pub caches: Vec<Cache>,
    /// The leases of the process's elections and rings.
    pub leases: Vec<Lease>,
    /// The shares of sharded factories.
    pub shards: Vec<Shards>,
    /// The guards of operators.
    pub guards: Vec<Guard>,
    /// The keys in hot loops, of all kinds.
    pub hot_loops: Vec<HotLoop>,
    /// The number of writes that operators in plan mode would send.
    ///
    /// `None` without such an operator.
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
    /// When the server started.
    pub started: String,
    /// The time since the server started, in seconds.
    pub uptime: f64,
    /// The present time of the program.
    pub now: String,
    /// The log filter, if the console has one.
    pub log_filter: Option<String>,
}

/// The permissions of the user of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Allowed {
    /// The name of the user.
    pub user: String,
    /// Whether actions are enabled, and the user may perform them.
    pub actions: bool,
}
