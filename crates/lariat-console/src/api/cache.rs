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
    /// The phase, as a text.
    pub phase: String,
    /// Whether it is synced.
    pub synced: bool,
    /// Whether it is synced and without a watch for more than five seconds.
    pub stale: bool,
    /// Of a list that is being read: how many objects have been read.
    pub loaded: Option<usize>,
    /// Of a list that is being read: how many objects there are, if the API server has sent it.
    pub total: Option<usize>,
    /// The number of objects.
    pub objects: usize,
    /// Their size in bytes.
    pub bytes: usize,
    /// How objects are kept, as a text.
    pub policy: String,
    /// How many values were decoded.
    pub decodes: u64,
    /// The resource version of the cache.
    pub resource_version: Option<String>,
    /// How often all objects were read.
    pub loads: u64,
    /// Watches opened.
    pub watches: u64,
    /// Requests that followed another one, by the reason why that one ended.
    pub reconnects: Vec<(String, u64)>,
    /// Objects and events that could not be read.
    pub unreadable: u64,
    /// How long ago the API server last sent something, in seconds.
    pub last_heard: Option<f64>,
    /// The last error since the last success.
    pub last_error: Option<String>,
    /// The delay before the next attempt, in seconds.
    pub retry_in: Option<f64>,
}
