//! Custom indexes, by functions of the user.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use lariat_core::ObjectKey;

use super::posting::Postings;
use crate::store::object::CachedObject;

/// Returns the values under which an object is found.
pub(crate) type IndexFn = dyn Fn(&Arc<CachedObject>) -> Vec<String> + Send + Sync;

/// The values of one object in every custom index, in the order of the indexes.
pub(in crate::store) type Values = Vec<Box<[Arc<str>]>>;

/// One index.
pub(in crate::store) struct CustomIndex {
    name: Arc<str>,
    by_value: Postings<Arc<str>>,
    /// The values of each object; objects without values have no entry.
    by_key: HashMap<ObjectKey, Box<[Arc<str>]>>,
}

impl CustomIndex {
    pub(in crate::store) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            by_value: Postings::default(),
            by_key: HashMap::new(),
        }
    }

    pub(in crate::store) fn name(&self) -> &str {
        &self.name
    }

    /// Sets the values of an object; without values it is removed.
    pub(in crate::store) fn put(&mut self, key: &ObjectKey, values: Box<[Arc<str>]>) {
        // Adding a value that stays has no effect; then only values that are no longer there are removed.
        for value in &values {
            self.by_value.add(&**value, key);
        }
        // Stored, rather than computed again: the function may return other values for the old state by now.
        let before = self.by_key.remove(key).unwrap_or_default();
        for value in before.iter().filter(|value| !values.contains(value)) {
            self.by_value.remove(&**value, key);
        }
        if !values.is_empty() {
            self.by_key.insert(key.clone(), values);
        }
    }

    pub(in crate::store) fn keys(&self, value: &str) -> impl Iterator<Item = &ObjectKey> {
        self.by_value.keys(value)
    }

    pub(in crate::store) fn count(&self, value: &str) -> usize {
        self.by_value.count(value)
    }

    /// Returns how many objects have a value.
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.by_value.bytes() + self.by_key.capacity() * (size_of::<ObjectKey>() + 48)
    }
}

impl fmt::Debug for CustomIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomIndex")
            .field("name", &self.name)
            .field("objects", &self.by_key.len())
            .finish_non_exhaustive()
    }
}

/// Calls an index function of the user.
///
/// If it panics, the object has no values and an error is logged.
pub(in crate::store) fn values(
    name: &str,
    function: &IndexFn,
    object: &Arc<CachedObject>,
) -> Box<[Arc<str>]> {
    // A function that panics for one object must not stop the reflector.
    let values = catch_unwind(AssertUnwindSafe(|| function(object))).unwrap_or_else(|_| {
        let key = object.key();
        tracing::error!(index = name, %key, "the function of an index panicked; the object is not indexed");
        Vec::new()
    });
    let mut values: Vec<Arc<str>> = values.into_iter().map(Arc::from).collect();
    // A function may return a value twice, which must count once.
    values.sort_unstable();
    values.dedup();
    values.into()
}
