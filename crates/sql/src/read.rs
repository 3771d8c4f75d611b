//! The results of queries, before they become answers.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use lariat_core::Gvk;

use crate::field::{Value, natural_key};
use crate::query::{Part, Plan, QueryError};
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
    /// The answers that are held leave no room for this one.
    #[error("there is no room for the answer")]
    NoRoom,
}

/// How many bytes an answer may have.
#[derive(Debug, Clone)]
pub(crate) struct ByteLimit {
    pub(crate) most: u64,
    pub(crate) room: Arc<dyn Room>,
}

/// Room for the bytes of an answer.
pub(crate) trait Room: fmt::Debug + Send + Sync {
    /// Takes this many bytes instead of those taken before; `false` without room.
    fn take(&self, bytes: u64) -> bool;
}

impl ByteLimit {
    /// Takes room for the first objects of these sizes; returns how many fit.
    ///
    /// At least one fits, however large it is. `other` bytes of the answer count too. It is called before the objects
    /// are read.
    ///
    /// # Errors
    ///
    /// Fails if there is no room, or some objects do not fit and the part must not end early.
    pub(crate) fn fit(&self, plan: &Plan, other: u64, sizes: &[u64]) -> Result<usize, ReadError> {
        let (mut bytes, mut fit) = (other, 0);
        for size in sizes {
            let more = bytes.saturating_add(*size);
            if fit > 0 && more > self.most {
                break;
            }
            (bytes, fit) = (more, fit + 1);
        }
        if fit < sizes.len() && !matches!(plan.part, Part::After { .. }) {
            let most = self.most;
            return Err(QueryError::LargePage { most, fit }.into());
        }
        if self.room.take(bytes) {
            Ok(fit)
        } else {
            Err(ReadError::NoRoom)
        }
    }
}

/// The bytes that a part of an answer has so far.
#[derive(Debug)]
pub(crate) struct Weight {
    pub(crate) most: u64,
    pub(crate) bytes: u64,
}

impl Weight {
    pub(crate) fn new(limit: Option<&ByteLimit>) -> Self {
        Self {
            most: limit.map_or(u64::MAX, |limit| limit.most),
            bytes: 0,
        }
    }

    /// Adds bytes; returns whether they are within the limit.
    pub(crate) fn add(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.bytes <= self.most
    }

    /// Fails if the counts of summaries are too large.
    pub(crate) fn check_counts(&self) -> Result<(), QueryError> {
        if self.bytes <= self.most {
            return Ok(());
        }
        Err(QueryError::LargeCounts { most: self.most })
    }
}

/// How many objects have a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) value: String,
    pub(crate) namespace: Option<String>,
    pub(crate) objects: u64,
}

impl Count {
    /// Returns the approximate size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let namespace = self.namespace.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.value.len() + namespace
    }

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
