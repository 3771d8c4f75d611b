//! Remembers the statuses that this process applied, to skip applies without changes.
//!
//! Unlike a merge, an apply cannot be compared with the object alone: a field that is no longer given must be removed,
//! although the object still has every given value.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use lariat_cache::CachedObject;
use lariat_core::{ResourceVersion, TableSize, Uid};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::diff::without_nulls;
use crate::wire::json_of;

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
    /// The version of the state after it, and the hash of its whole status.
    version: ResourceVersion,
    status: u64,
}

impl Applied {
    /// Returns whether a reconciler has applied to an object since the process started.
    pub(super) fn has(&self, uid: &Uid, handler: &str) -> bool {
        let all = self.0.lock();
        all.get(uid).is_some_and(|all| find(all, handler).is_some())
    }

    /// Returns whether a reconciler last applied exactly these fields, and the status has not changed since.
    ///
    /// A change may be the apply of another replica under the same field manager, whose fields have to be removed.
    ///
    /// `is_whole` is whether the cache shows the whole status. If not, each other version counts as a change.
    pub(super) fn is_last(
        &self,
        state: &CachedObject,
        handler: &str,
        fields: &Value,
        is_whole: bool,
    ) -> bool {
        let all = self.0.lock();
        let known = all.get(state.uid()).and_then(|all| find(all, handler));
        let known = known.map(|last| (last.fields, last.version.clone(), last.status));
        drop(all);
        known.is_some_and(|(of_fields, of_version, of_status)| {
            let is_same = !of_version.is_empty() && of_version == *state.version();
            let is_unchanged = || is_whole && of_status == hash(&status_of(state));
            of_fields == hash(fields) && (is_same || is_unchanged())
        })
    }

    /// Remembers an apply, and the state after it.
    pub(super) fn remember(&self, state: &CachedObject, handler: &str, fields: &Value) {
        let (fields, status) = (hash(fields), hash(&status_of(state)));
        let (uid, version) = (state.uid(), state.version().clone());
        let mut all = self.0.lock();
        if all.len() >= MOST {
            // Clearing everything needs no order of use, and costs one more apply for each object.
            all.clear();
        }
        let of_object = all.entry(uid.clone()).or_default();
        match of_object.iter_mut().find(|last| *last.handler == *handler) {
            Some(last) => (last.fields, last.version, last.status) = (fields, version, status),
            None => of_object.push(Last {
                handler: handler.into(),
                fields,
                version,
                status,
            }),
        }
    }

    /// Returns the number of remembered objects, and its bound.
    pub(crate) fn table_sizes(&self) -> TableSize {
        TableSize::new("applied statuses", self.0.lock().len(), MOST)
    }
}

/// Returns the status of an object, which is an empty object if there is none.
pub(super) fn status_of(state: &CachedObject) -> Value {
    match json_of(state)["status"].take() {
        Value::Null => json!({}),
        status => without_nulls(status),
    }
}

fn find<'a>(all: &'a [Last], handler: &str) -> Option<&'a Last> {
    all.iter().find(|last| *last.handler == *handler)
}

fn hash(fields: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    fields.hash(&mut hasher);
    hasher.finish()
}
