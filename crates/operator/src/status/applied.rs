//! Remembers the statuses that this process applied, to skip applies without changes.
//!
//! Unlike a merge, an apply cannot be compared with the object alone: a field that is no longer given must be removed,
//! although the object still has every given value.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use lariat_core::{TableSize, Uid};
use parking_lot::Mutex;
use serde_json::Value;

/// The bound of the remembered objects.
///
/// A forgotten one is applied once more, which changes nothing.
const MOST: usize = 64 * 1024;

/// The hash of the fields that each reconciler last applied to each object.
#[derive(Debug, Default)]
pub(crate) struct Applied(Mutex<HashMap<Uid, Vec<Last>>>);

/// The last apply of one reconciler.
#[derive(Debug)]
struct Last {
    handler: Box<str>,
    fields: u64,
    /// The hash of the whole status after it.
    status: u64,
}

impl Applied {
    /// Returns whether a reconciler has applied to an object since the process started.
    pub(super) fn has(&self, uid: &Uid, handler: &str) -> bool {
        self.last(uid, handler).is_some()
    }

    /// Returns whether a reconciler last applied exactly these fields, and the status has not changed since.
    ///
    /// A change may be the apply of another replica under the same field manager, whose fields have to be removed.
    pub(super) fn is_last(&self, uid: &Uid, handler: &str, fields: &Value, status: &Value) -> bool {
        self.last(uid, handler) == Some((hash(fields), hash(status)))
    }

    fn last(&self, uid: &Uid, handler: &str) -> Option<(u64, u64)> {
        let all = self.0.lock();
        let last = all
            .get(uid)?
            .iter()
            .find(|last| *last.handler == *handler)?;
        Some((last.fields, last.status))
    }

    pub(super) fn remember(&self, uid: &Uid, handler: &str, fields: &Value, status: &Value) {
        let (fields, status) = (hash(fields), hash(status));
        let mut all = self.0.lock();
        if all.len() >= MOST {
            // Clearing everything needs no order of use, and costs one more apply for each object.
            all.clear();
        }
        let of_object = all.entry(uid.clone()).or_default();
        match of_object.iter_mut().find(|last| *last.handler == *handler) {
            Some(last) => (last.fields, last.status) = (fields, status),
            None => of_object.push(Last {
                handler: handler.into(),
                fields,
                status,
            }),
        }
    }

    /// Returns the number of remembered objects, and its bound.
    pub(crate) fn table_sizes(&self) -> TableSize {
        TableSize::new("applied statuses", self.0.lock().len(), MOST)
    }
}

fn hash(fields: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    fields.hash(&mut hasher);
    hasher.finish()
}
