//! The results of queries, before they become answers.

use std::cmp::Reverse;

use lariat_core::Gvk;

use crate::field::{Value, natural_key};
use crate::query::QueryError;
use crate::revision::Revision;
use crate::sql::StorageError;

/// The result of a query, all of it at one revision.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) found: Vec<FoundObject>,
    /// The number of objects on all pages; `None` if it was not requested.
    pub(crate) total: Option<u64>,
    /// The cursor for the next objects; `None` at the end.
    pub(crate) next: Option<String>,
    pub(crate) revision: Revision,
    /// The counts of each summary.
    pub(crate) summaries: Vec<Vec<Count>>,
}

/// An object that a query has found.
pub(crate) struct FoundObject {
    pub(crate) key: String,
    pub(crate) version: String,
    pub(crate) json: Vec<u8>,
}

/// The error of a query that was not answered.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The rows are between two states of the kind, or there are none yet.
    #[error("{kind} is being written")]
    Unfilled { kind: Gvk },
}

/// How many objects have a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) value: String,
    pub(crate) namespace: Option<String>,
    pub(crate) objects: u64,
}

impl Count {
    /// Sorts counts: most objects first, then by value and namespace.
    ///
    /// The order is the same for all databases.
    pub(crate) fn sorted(
        counts: impl IntoIterator<Item = (Value, Option<String>, u64)>,
    ) -> Vec<Self> {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_cached_key(|(value, namespace, objects)| {
            // The sort key of a natural text is computed once.
            let (natural, other) = match value {
                Value::Natural(text) => (Some(natural_key(text)), None),
                value => (None, Some(value.clone())),
            };
            (Reverse(*objects), natural, other, namespace.clone())
        });
        let counts = counts.into_iter().map(|(value, namespace, objects)| Self {
            value: value.to_string(),
            namespace,
            objects,
        });
        counts.collect()
    }
}

/// Some objects, and the number of the last row.
pub(crate) struct Page {
    pub(crate) objects: Vec<Box<[u8]>>,
    pub(crate) last: Option<i64>,
}
