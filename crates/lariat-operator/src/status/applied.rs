//! The statuses that this process applied.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use lariat_core::{Remembered, Uid};
use parking_lot::Mutex;
use serde_json::Value;

/// The number of objects remembered. A forgotten one is applied once more, which changes nothing.
const MOST: usize = 64 * 1024;

/// The hash of the last fields that each reconciler applied to each object.
#[derive(Debug, Default)]
pub(crate) struct Applied(Mutex<HashMap<Uid, Vec<Last>>>);

/// The last apply of one reconciler.
#[derive(Debug)]
struct Last {
    handler: Box<str>,
    fields: u64,
}

impl Applied {
    /// Returns whether a reconciler has applied anything to an object since the start.
    pub(super) fn has(&self, uid: &Uid, handler: &str) -> bool {
        self.fields(uid, handler).is_some()
    }

    /// Returns whether a reconciler's last apply had exactly these fields.
    pub(super) fn is_last(&self, uid: &Uid, handler: &str, fields: &Value) -> bool {
        self.fields(uid, handler) == Some(hash(fields))
    }

    fn fields(&self, uid: &Uid, handler: &str) -> Option<u64> {
        let all = self.0.lock();
        let last = all
            .get(uid)?
            .iter()
            .find(|last| *last.handler == *handler)?;
        Some(last.fields)
    }

    pub(super) fn remember(&self, uid: &Uid, handler: &str, fields: &Value) {
        let fields = hash(fields);
        let mut all = self.0.lock();
        if all.len() >= MOST {
            all.clear();
        }
        let of_object = all.entry(uid.clone()).or_default();
        match of_object.iter_mut().find(|last| *last.handler == *handler) {
            Some(last) => last.fields = fields,
            None => of_object.push(Last {
                handler: handler.into(),
                fields,
            }),
        }
    }

    /// Returns the size and bound.
    pub(crate) fn remembered(&self) -> Remembered {
        Remembered::new("applied statuses", self.0.lock().len(), MOST)
    }
}

fn hash(fields: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    fields.hash(&mut hasher);
    hasher.finish()
}
