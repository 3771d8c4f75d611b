//! Foreign changes that come with a request.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lariat_cluster::StoredObject;
use lariat_core::ObjectKey;

use crate::shop;

/// The annotation that a conflict changes before each write of an object.
///
/// See [`Action::Conflict`](lariat_cluster::faults::Action::Conflict).
const ANNOTATION: &str = "lariat/touched";

/// The time for which changes are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// The objects that conflicts have changed of late.
///
/// They are known by their resource, without its group, and their key.
#[derive(Default)]
pub(super) struct Touched(BTreeMap<(String, ObjectKey), Touches>);

#[derive(Default)]
struct Touches {
    /// The value of the annotation, another one for each change.
    last: String,
    times: VecDeque<Duration>,
}

impl Touched {
    /// Observes a state of an object.
    pub(super) fn saw(&mut self, object: &StoredObject, now: Duration) {
        // Most objects are never changed by a conflict, and need not be parsed.
        let is_touched = |json: &[u8]| {
            let mut windows = json.windows(ANNOTATION.len());
            windows.any(|window| window == ANNOTATION.as_bytes())
        };
        if !is_touched(&object.json()) {
            return;
        }
        let json = shop::json_of(object);
        let Some(value) = json["metadata"]["annotations"][ANNOTATION].as_str() else {
            return;
        };
        let resource = object.resource();
        // Requests name the group in another place of their path than the stored resource does.
        let plural = resource
            .split_once('.')
            .map_or(resource, |(plural, _)| plural);
        let of = (plural.to_owned(), object.key().clone());
        let touches = self.0.entry(of).or_default();
        // The annotation stays in the object: only a new value is a further conflict.
        if touches.last != value {
            value.clone_into(&mut touches.last);
            touches.times.push_back(now);
        }
    }

    /// Returns how often the object at a path was changed within the last minute.
    pub(super) fn lately(&mut self, path: &str, now: Duration) -> usize {
        let Some(touches) = object_of(path).and_then(|of| self.0.get_mut(&of)) else {
            return 0;
        };
        let times = &mut touches.times;
        while times.front().is_some_and(|at| *at + MINUTE < now) {
            times.pop_front();
        }
        times.len()
    }
}

fn object_of(path: &str) -> Option<(String, ObjectKey)> {
    let (_, rest) = path.split_once("/namespaces/")?;
    let mut parts = rest.split('/');
    let (namespace, plural, name) = (parts.next()?, parts.next()?, parts.next()?);
    Some((plural.to_owned(), ObjectKey::namespaced(namespace, name)))
}
