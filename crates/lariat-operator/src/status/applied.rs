//! What was applied to the status of objects by this process.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use lariat_core::Uid;
use parking_lot::Mutex;
use serde_json::Value;

/// How many objects are remembered. What is forgotten is applied once more, which changes nothing.
const MOST: usize = 64 * 1024;

/// The last fields that were applied to each object, as a hash.
#[derive(Debug, Default)]
pub(crate) struct Applied(Mutex<HashMap<Uid, u64>>);

impl Applied {
    /// Returns whether these fields, and no others, were applied last.
    pub(super) fn is_last(&self, uid: &Uid, fields: &Value) -> bool {
        self.0.lock().get(uid) == Some(&hash(fields))
    }

    pub(super) fn remember(&self, uid: &Uid, fields: &Value) {
        let mut last = self.0.lock();
        if last.len() >= MOST {
            last.clear();
        }
        last.insert(uid.clone(), hash(fields));
    }
}

fn hash(fields: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    fields.hash(&mut hasher);
    hasher.finish()
}
