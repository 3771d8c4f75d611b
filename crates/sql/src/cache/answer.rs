//! Answers to queries, and the state of a kind.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use serde::de::DeserializeOwned;

use crate::read::Read;
use crate::revision::Revision;

/// The answer to a query: objects, counts and the revision, all of one state.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::sql::{Query, SqlKind};
///
/// # async fn example(pods: &SqlKind) -> Result<(), Box<dyn std::error::Error>> {
/// let answer = pods.query(&Query::new().page(1, 20)).await?;
/// for found in &answer.objects {
///     let pod: Pod = found.decode()?;
///     println!("{} on {:?}", found.key, pod.spec.and_then(|spec| spec.node_name));
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct QueryResult {
    /// The objects, in the order of the query.
    pub objects: Vec<FoundObject>,
    /// The number of objects that meet the conditions, on all pages together.
    ///
    /// `None` if the query sets a [limit](crate::Query::limit) or returns all objects.
    pub total: Option<u64>,
    /// The cursor for [`after`](crate::Query::after) in the next query.
    ///
    /// `None` at the end, and if the query has no limit.
    pub next: Option<String>,
    /// The revision of this state, from which a watch can start.
    pub revision: Revision,
    /// The counts of each [summary](crate::Query::summarize) of the query.
    pub summaries: Vec<Vec<Count>>,
}

/// An object of an answer; its debug form does not show the content.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundObject {
    /// The namespace and name of the object.
    pub key: ObjectKey,
    /// The resource version of the object.
    pub version: String,
    /// The object as JSON, as it is [cached](lariat_cache::CachedObject::json).
    pub json: Vec<u8>,
}

impl fmt::Debug for FoundObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundObject")
            .field("key", &self.key)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl FoundObject {
    /// Decodes the object as a type.
    ///
    /// # Errors
    ///
    /// Fails if the object does not fit the type.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<K, serde_json::Error> {
        serde_json::from_slice(&self.json)
    }
}

/// How many objects have a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// The value.
    pub value: String,
    /// The namespace of the objects; `None` unless the query counts by namespace.
    ///
    /// See [`summarize_by_namespace`](crate::Query::summarize_by_namespace).
    pub namespace: Option<String>,
    /// The number of objects.
    pub objects: u64,
}

/// The state of a kind of the cache.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SqlStatus {
    /// The kind.
    pub kind: Gvk,
    /// Whether all objects of the informer's initial list were written.
    pub is_synced: bool,
    /// The revision up to which changes were written.
    pub revision: Revision,
    /// The number of objects with changes that are not committed yet.
    pub unwritten: usize,
    /// The age of the oldest published change that is not committed; zero if none.
    ///
    /// An answer may lack what happened in that time. What the API server has not sent yet is not part of it: see
    /// [`KindStatus::last_received`](lariat_cache::KindStatus::last_received). It is measured by a monotonic clock.
    pub lag: Duration,
    /// The number of objects that are cached without their content.
    ///
    /// Their fields outside the metadata have no value: the kind is stored [on
    /// demand](lariat_cache::Storage::OnDemand), or a [`ContentFilter`](lariat_cache::ContentFilter) excludes the
    /// objects. They are written again when their content is cached.
    pub without_content: usize,
    /// The number of objects that are missing, because the database refuses a value of theirs.
    ///
    /// Such a value is longer than an index of PostgreSQL takes (2,704 bytes): a name, or the uid of an owner. The
    /// objects are logged, and written once they have changed so that they can be. Other objects are not affected.
    pub left_out: usize,
    /// How many values of each field could not be indexed, by the field's name.
    ///
    /// The objects have no value for that field.
    pub unindexable: BTreeMap<String, u64>,
    /// The number of printer columns of the kind that could not become fields.
    ///
    /// Their type or `jsonPath` is not supported, or the kind has too many; see
    /// [`Schema::with_columns`](crate::Schema::with_columns).
    pub skipped_columns: usize,
    /// The number of data keys from before a rotation that are still kept.
    ///
    /// See [`SqlCache::rotate_data_key`](crate::SqlCache::rotate_data_key). Zero once all rows of the cache are sealed
    /// with the current data key, and for a kind that is not encrypted. A replica that only reads may notice a rotation
    /// late.
    pub old_data_keys: usize,
    /// The largest number of rows that may still be sealed with an old data key.
    ///
    /// The process that writes the cache counts them when it begins to seal rows anew. It is zero in other processes,
    /// and before that.
    pub old_rows: usize,
    /// The error of the last write, if it failed.
    pub last_error: Option<String>,
}

impl From<Read> for QueryResult {
    fn from(read: Read) -> Self {
        let found = read.found.into_iter().filter_map(|found| {
            Some(FoundObject {
                // The cache itself wrote the key, so a key that does not parse is not expected.
                key: found.key.parse().ok()?,
                version: found.version,
                json: found.json,
            })
        });
        let counts = read.summaries.into_iter().map(|counts| {
            let counts = counts.into_iter().map(|count| Count {
                value: count.value,
                namespace: count.namespace,
                objects: count.objects,
            });
            counts.collect()
        });
        Self {
            objects: found.collect(),
            total: read.total,
            next: read.next,
            revision: read.revision,
            summaries: counts.collect(),
        }
    }
}
