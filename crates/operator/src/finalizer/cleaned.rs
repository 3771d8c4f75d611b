//! Remembers the deletions whose cleanup has succeeded.
//!
//! The cleanup and the removal of the finalizer are separate: if the removal fails, the next call must not clean up
//! again.

use std::collections::{HashMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use lariat_cache::CachedObject;
use lariat_core::Uid;
use serde::Deserialize;

/// The bound of the remembered deletions.
///
/// If more deleted objects wait for the finalizers of others at the same time, the oldest are forgotten. They are
/// cleaned up again if their own finalizer is still there.
const MOST: usize = 16 * 1024;

/// One deletion of an object.
///
/// An API server that is restored from a backup may bring an object back under the same uid. Its next deletion has
/// another timestamp. It is another deletion, with its own cleanup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deletion {
    uid: Uid,
    /// The time at which the deletion was requested.
    time: String,
}

impl Deletion {
    /// Returns the deletion of an object, or `None` if it is not being deleted.
    pub(super) fn of(object: &CachedObject) -> Option<Self> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            deletion_timestamp: Option<String>,
            deletion_grace_period_seconds: Option<i64>,
        }
        #[derive(Default, Deserialize)]
        struct Object {
            metadata: Metadata,
        }
        if !object.is_deleting() {
            return None;
        }
        let json = object.json();
        let read = json.and_then(|json| serde_json::from_slice::<Object>(&json).ok());
        let metadata = read.unwrap_or_default().metadata;
        let end = metadata.deletion_timestamp.unwrap_or_default();
        let grace = metadata.deletion_grace_period_seconds.unwrap_or_default();
        Some(Self {
            uid: object.uid().clone(),
            time: requested_at(&end, grace).unwrap_or(end),
        })
    }
}

/// Returns the time at which a deletion that ends at `end` was requested.
///
/// The deletion timestamp is the end of the grace period. A second delete request with a shorter grace period changes
/// the end, but it is still the same deletion.
fn requested_at(end: &str, grace: i64) -> Option<String> {
    let end: Timestamp = end.parse().ok()?;
    let requested = end.checked_sub(SignedDuration::from_secs(grace)).ok()?;
    Some(requested.to_string())
}

/// The deletions whose cleanup has succeeded.
#[derive(Debug, Default)]
pub(super) struct Cleaned {
    times: HashMap<Uid, String>,
    /// The same uids, oldest first, and some that were forgotten since.
    order: VecDeque<Uid>,
}

impl Cleaned {
    pub(super) fn contains(&self, deletion: &Deletion) -> bool {
        self.times.get(&deletion.uid) == Some(&deletion.time)
    }

    pub(super) fn insert(&mut self, deletion: Deletion) {
        let Deletion { uid, time } = deletion;
        if self.times.insert(uid.clone(), time).is_some() {
            return;
        }
        self.order.push_back(uid);
        while self.order.len() > MOST {
            let oldest = self.order.pop_front();
            oldest.map(|uid| self.times.remove(&uid));
        }
    }

    /// Returns the number of remembered deletions, and its bound.
    pub(super) fn table_sizes(&self) -> (usize, usize) {
        (self.order.len(), MOST)
    }

    pub(super) fn forget(&mut self, uid: &Uid) {
        self.times.remove(uid);
        // The queue is not searched, which would be slow. Objects are mostly forgotten in the order in which they were
        // cleaned up, so trimming its front keeps it short.
        while let Some(first) = self.order.front()
            && !self.times.contains_key(first)
        {
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::{Gvk, RawObject};
    use serde_json::json;

    use super::*;

    fn deletion(number: usize) -> Deletion {
        Deletion {
            uid: Uid::new(&number.to_string()),
            time: "2026-01-01T00:00:00Z".to_owned(),
        }
    }

    #[test]
    fn the_last_ones_are_remembered_until_they_are_gone() {
        let mut cleaned = Cleaned::default();
        for number in 0..MOST + 10 {
            cleaned.insert(deletion(number));
            cleaned.insert(deletion(number));
        }
        assert_eq!(cleaned.times.len(), MOST);
        assert!(!cleaned.contains(&deletion(9)));
        assert!(cleaned.contains(&deletion(10)));
        for number in (10..MOST + 10).rev() {
            cleaned.forget(&deletion(number).uid);
        }
        assert!(cleaned.times.is_empty() && cleaned.order.is_empty());
    }

    #[test]
    fn a_second_deletion_of_the_same_object_is_another() {
        let with_grace = |time: Option<&str>, grace: u64| {
            let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
                "name": "a", "uid": "u", "resourceVersion": "1", "deletionTimestamp": time,
                "deletionGracePeriodSeconds": grace}});
            let json = object.to_string();
            let raw = RawObject::parse(json.as_bytes(), &Gvk::new("", "v1", "Pod"));
            Deletion::of(&CachedObject::new(raw.expect("a pod")))
        };
        let at = |time| with_grace(time, 0);
        let (first, second) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z");
        let mut cleaned = Cleaned::default();
        cleaned.insert(at(Some(first)).expect("it is being deleted"));
        assert!(cleaned.contains(&at(Some(first)).expect("it is being deleted")));
        assert!(!cleaned.contains(&at(Some(second)).expect("it is being deleted")));
        assert_eq!(at(None), None, "it lives");
        // Deleted with a grace period of 30 seconds, then of 5.
        cleaned.insert(with_grace(Some("2026-01-01T00:01:30Z"), 30).expect("it is being deleted"));
        let sooner = with_grace(Some("2026-01-01T00:01:05Z"), 5);
        assert!(cleaned.contains(&sooner.expect("it is being deleted")));
    }
}
