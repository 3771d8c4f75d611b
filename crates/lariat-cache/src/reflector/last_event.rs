//! The last event of a watch, which the next watch begins with after a failure.

use std::time::Duration;

use lariat_core::{ObjectKey, RawObject, ResourceVersion, Uid};
use tokio::time::Instant;

use crate::store::{Delta, Store};

/// How long before a failure the last event may have come that is to be repeated.
///
/// kube-apiserver compacts its history every five minutes. A version that it has forgotten would lead to a list.
const REPEATABLE: Duration = Duration::from_secs(300);

/// The last event of a watch.
#[derive(Debug, Clone)]
pub(super) struct LastEvent {
    key: ObjectKey,
    uid: Uid,
    version: u64,
    is_deletion: bool,
    received: Instant,
}

impl LastEvent {
    /// Returns the event of a delta; `None` if versions are not numbers.
    pub(super) fn of(delta: &Delta) -> Option<Self> {
        let (Delta::Present(object) | Delta::Deleted(object)) = delta;
        // A watch from version 0 begins anywhere.
        let version = object.version().number().ok().filter(|it| *it > 1)?;
        Some(Self {
            key: object.key().clone(),
            uid: object.uid().clone(),
            version,
            is_deletion: matches!(delta, Delta::Deleted(_)),
            received: Instant::now(),
        })
    }

    /// Returns the event of an object that an earlier run has saved; `None` if it ended with another event.
    pub(super) fn saved(store: &Store, since: &ResourceVersion) -> Option<Self> {
        let next: ResourceVersion = (since.number().ok()? + 1).into();
        let snapshot = store.snapshot();
        let last = snapshot.iter().find(|object| *object.version() == next)?;
        Some(Self {
            key: last.key().clone(),
            uid: last.uid().clone(),
            version: last.version().number().ok()?,
            is_deletion: false,
            received: Instant::now(),
        })
    }

    /// Returns whether a server that works repeats it.
    pub(super) fn is_repeatable(&self) -> bool {
        self.received.elapsed() < REPEATABLE
    }

    /// Returns the version from which a watch begins with this event.
    pub(super) fn before(&self) -> ResourceVersion {
        (self.version - 1).into()
    }

    /// Returns the version from which the next run continues, if it can expect this event from the saved objects.
    pub(super) fn resume(&self) -> Option<ResourceVersion> {
        let is_expected = self.is_repeatable() && !self.is_deletion;
        is_expected.then(|| self.before())
    }

    /// Returns whether it left an object in a state.
    pub(super) fn is(&self, object: &RawObject, is_deletion: bool) -> bool {
        let state = (object.key(), object.uid(), object.version().number().ok());
        state == (&self.key, &self.uid, Some(self.version)) && is_deletion == self.is_deletion
    }
}
