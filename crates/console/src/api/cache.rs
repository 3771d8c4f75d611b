//! Caches.

use serde::{Deserialize, Serialize};

use super::KindRef;

/// The cache of a kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Cache {
    /// The kind.
    #[serde(flatten)]
    pub kind: KindRef,
    /// The phase, as text.
    pub phase: String,
    /// Whether the cache is synced.
    pub synced: bool,
    /// Whether the cache is synced, but has had no watch for more than five seconds.
    pub stale: bool,
    /// How long a kind that was cached has not been served, in seconds.
    pub blind: Option<f64>,
    /// While the cache is listing: the number of objects received.
    pub loaded: Option<usize>,
    /// While the cache is listing: the total number of objects, if known.
    pub total: Option<usize>,
    /// The number of objects.
    pub objects: usize,
    /// The size of the objects in bytes.
    pub bytes: usize,
    /// How objects are stored, as text.
    pub policy: String,
    /// The number of decoded values.
    pub decodes: u64,
    /// The resource version of the cache.
    pub resource_version: Option<String>,
    /// How often all objects were loaded, by a list or a watch list.
    pub loads: u64,
    /// The number of watches opened.
    pub watches: u64,
    /// The reconnects, by the reason why the previous request ended.
    pub reconnects: Vec<(String, u64)>,
    /// The number of objects and events that could not be read.
    pub unreadable: u64,
    /// The time since the API server last sent data, in seconds.
    pub last_received: Option<f64>,
    /// The last error since the last success.
    pub last_error: Option<String>,
    /// The delay before the next attempt, in seconds.
    pub retry_in: Option<f64>,
}
