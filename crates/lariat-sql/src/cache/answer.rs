//! What is returned to those who ask: answers, and the state of a kind.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use serde::de::DeserializeOwned;

use crate::revision::Revision;
use crate::sqlite::Read;

/// What a query finds: objects, counts and the revision, all of one state of the cache.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Answer {
    /// The objects, in the order of the query.
    pub objects: Vec<Found>,
    /// How many objects meet the conditions, on all pages; none where the query asks for a limit or for all.
    pub total: Option<u64>,
    /// What the next query takes as [`after`](crate::Query::after); none at the end, and where no limit was asked for.
    pub next: Option<String>,
    /// From where a watch goes on behind this state.
    pub revision: Revision,
    /// What was counted, for each [summary](crate::Query::summarize) of the query.
    pub summaries: Vec<Vec<Count>>,
}

/// An object that was found. Its content is not shown in debug form.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its resource version.
    pub version: String,
    /// The object as JSON, as it is [cached](lariat_cache::CachedObject::json).
    pub json: Vec<u8>,
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found")
            .field("key", &self.key)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Found {
    /// Reads the object as a type.
    ///
    /// # Errors
    ///
    /// The object does not fit the type.
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
    /// The namespace of the objects, if the query counts [by namespace](crate::Query::summarize_by_namespace).
    pub namespace: Option<String>,
    /// How many there are.
    pub objects: u64,
}

/// The state of a kind of the cache.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SqlStatus {
    /// The kind.
    pub kind: Gvk,
    /// Whether everything that its informer read first is written.
    pub is_synced: bool,
    /// Up to where it is written.
    pub revision: Revision,
    /// How many objects have changes that are not committed yet.
    pub unwritten: usize,
    /// The age of the oldest change that the informer has published and that is not committed; zero if there is none.
    ///
    /// An answer may lack what happened in that time. What the API server has not sent yet is not part of it: see
    /// [`KindStatus::last_heard`](lariat_cache::KindStatus::last_heard). It is measured by a clock that is never set.
    pub lag: Duration,
    /// How many objects are cached without their content, so that fields outside their metadata have no value.
    ///
    /// Their kind is kept [on demand](lariat_cache::Storage::OnDemand), or a [`ContentFilter`](lariat_cache::ContentFilter) leaves
    /// them out. When their content comes, they are written again.
    pub without_content: usize,
    /// How often the value of a field could not be indexed, by the field's name; those objects have no value there.
    pub unindexable: BTreeMap<String, u64>,
    /// How many printer columns of the kind are no fields, for their `jsonPath` is not supported.
    pub skipped_columns: usize,
    /// What goes wrong with writing, if anything does.
    pub last_error: Option<String>,
}

impl From<Read> for Answer {
    fn from(read: Read) -> Self {
        let found = read.found.into_iter().filter_map(|found| {
            Some(Found {
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
