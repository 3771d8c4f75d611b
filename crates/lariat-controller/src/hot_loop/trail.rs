//! The writes of a chain of runs, to detect progress.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_cache::CachedObject;
use lariat_core::{Gvk, ObjectKey, ResourceVersion};
use parking_lot::Mutex;

use super::fields;

/// How many objects and fields of a chain count as progress.
///
/// A chain that writes more counts as a loop that creates objects forever. This also bounds the memory.
const MOST: usize = 4096;

/// A run in a chain, in which each run is caused by the run before.
///
/// A run makes progress if it writes an object or a field that no run of its chain has written before. Work that
/// proceeds in steps does so, while a hot loop writes the same fields again. Values do not count, because a counter or
/// a timestamp has a new value in each run.
#[derive(Debug)]
pub(crate) struct ChainRun {
    /// Shared by all runs of the chain.
    trail: Arc<Mutex<Trail>>,
    progressed: AtomicBool,
}

/// What a chain of runs has written.
#[derive(Debug, Default)]
struct Trail {
    /// Hashes of the written objects and fields.
    written: HashSet<u64>,
    /// The last recorded write. A write is published to several subscribers, and must count once.
    last: Option<(ObjectKey, ResourceVersion)>,
}

impl ChainRun {
    /// Creates the next run of another run's chain, or the first of a new chain.
    pub(crate) fn after(previous: Option<&Arc<Self>>) -> Arc<Self> {
        let trail = previous.map(|step| Arc::clone(&step.trail));
        Arc::new(Self {
            trail: trail.unwrap_or_default(),
            progressed: AtomicBool::new(false),
        })
    }

    /// Returns whether the run has written something new to its chain.
    pub(crate) fn has_progressed(&self) -> bool {
        self.progressed.load(Ordering::Relaxed)
    }

    /// Records a write of the run. Without a state before, it is a creation.
    pub(crate) fn wrote(
        &self,
        gvk: &Gvk,
        before: Option<&Arc<CachedObject>>,
        after: &Arc<CachedObject>,
    ) {
        let is_known = |trail: &Trail| {
            let last = trail.last.as_ref();
            last.is_some_and(|(key, version)| key == after.key() && version == after.version())
        };
        if is_known(&self.trail.lock()) {
            return;
        }
        // Computed without the lock, since it decodes both states.
        let written = hashes(gvk, before, after);
        let mut trail = self.trail.lock();
        trail.last = Some((after.key().clone(), after.version().clone()));
        for hash in written {
            if trail.written.len() < MOST && trail.written.insert(hash) {
                self.progressed.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Returns a hash for each changed field, or one for a created object.
fn hashes(gvk: &Gvk, before: Option<&Arc<CachedObject>>, after: &Arc<CachedObject>) -> Vec<u64> {
    let hash = |path: &fields::Path| {
        let mut hasher = DefaultHasher::new();
        (gvk, after.key(), path).hash(&mut hasher);
        hasher.finish()
    };
    let whole = fields::Path::new();
    let Some(before) = before else {
        return vec![hash(&whole)];
    };
    if before.version() == after.version() {
        return Vec::new();
    }
    let changed = fields::all_changed(&fields::content(before), &fields::content(after));
    if changed.is_empty() {
        // Only metadata is cached, so the changed field is not known. The object counts instead, once.
        vec![hash(&whole)]
    } else {
        changed.iter().map(hash).collect()
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::RawObject;
    use serde_json::{Value, json};

    use super::*;

    fn gvk() -> Gvk {
        Gvk::new("", "v1", "ConfigMap")
    }

    fn object(name: &str, version: u64, data: &Value) -> Arc<CachedObject> {
        let metadata = json!({"name": name, "resourceVersion": version.to_string()});
        let json = json!({"metadata": metadata, "data": data}).to_string();
        let raw = RawObject::parse(json.as_bytes(), &gvk()).expect("it is one");
        Arc::new(CachedObject::new(raw))
    }

    /// Runs a chain in which each run changes one object, or creates it.
    ///
    /// Returns which of them made progress.
    fn chain(writes: &[(&str, Option<Value>, Value)]) -> Vec<bool> {
        let mut step = ChainRun::after(None);
        let mut progressed = Vec::new();
        for (number, (name, before, after)) in (1..).zip(writes) {
            step = ChainRun::after(Some(&step));
            let before = before
                .as_ref()
                .map(|before| object(name, number * 2, before));
            let after = object(name, number * 2 + 1, after);
            step.wrote(&gvk(), before.as_ref(), &after);
            // Published to a second subscriber.
            step.wrote(&gvk(), before.as_ref(), &after);
            progressed.push(step.has_progressed());
        }
        progressed
    }

    #[test]
    fn objects_and_fields_are_progress_and_values_are_not() {
        let n = |value: u32| json!({"n": value});
        let writes = [
            ("a", None, n(1)),
            ("b", None, n(1)),
            ("a", None, n(1)),
            ("a", Some(n(1)), n(2)),
            ("a", Some(n(2)), n(3)),
            ("a", Some(n(3)), json!({"n": 3, "m": 1})),
            ("b", Some(n(1)), n(2)),
            ("b", Some(n(2)), n(2)),
        ];
        assert_eq!(
            chain(&writes),
            [true, true, false, true, false, true, true, false],
            "the last one changes nothing that is seen",
        );
    }

    #[test]
    fn objects_without_end_are_not_progress_for_ever() {
        let mut step = ChainRun::after(None);
        let mut progressed = 0;
        for number in 0..5000 {
            step = ChainRun::after(Some(&step));
            step.wrote(&gvk(), None, &object(&format!("o{number}"), 1, &json!({})));
            progressed += usize::from(step.has_progressed());
        }
        assert_eq!(progressed, MOST);
    }
}
