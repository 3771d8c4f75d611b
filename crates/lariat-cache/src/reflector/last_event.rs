//! The last event of a watch, or the newest listed object, which the next watch begins with after a failure.

use std::time::Duration;

use lariat_core::{ObjectKey, RawObject, ResourceVersion, Uid};
use tokio::time::Instant;

use crate::store::{Delta, Store};

/// How long before a failure the last event came if the server must still have it.
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
    /// When it came; `None` if the server may have forgotten it.
    received: Option<Instant>,
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
            received: Some(Instant::now()),
        })
    }

    /// Returns the event of an object that an earlier run has saved; `None` if it ended with another event.
    pub(super) fn saved(
        store: &Store,
        namespace: Option<&str>,
        since: &ResourceVersion,
    ) -> Option<Self> {
        let next = since.number().ok()? + 1;
        let newest = Self::newest(store, namespace, &next.into());
        let last = newest.filter(|last| last.version == next)?;
        Some(Self {
            received: Some(Instant::now()),
            ..last
        })
    }

    /// Returns the event of the newest object of a namespace, or of all, up to a version.
    pub(super) fn newest(
        store: &Store,
        namespace: Option<&str>,
        reached: &ResourceVersion,
    ) -> Option<Self> {
        let reached = reached.number().ok()?;
        let snapshot = store.snapshot();
        let (version, newest) = snapshot
            .iter()
            .filter(|object| namespace.is_none_or(|it| object.key().namespace() == Some(it)))
            .filter_map(|object| Some((object.version().number().ok()?, object)))
            .filter(|(version, _)| (2..=reached).contains(version))
            .max_by_key(|(version, _)| *version)?;
        Some(Self {
            key: newest.key().clone(),
            uid: newest.uid().clone(),
            version,
            is_deletion: false,
            received: None,
        })
    }

    /// Returns the event at the time of a failure.
    pub(super) fn at_failure(self) -> Self {
        Self {
            received: self.received.filter(|it| it.elapsed() < REPEATABLE),
            ..self
        }
    }

    /// Returns whether a server that works has it, so that an expired version shows that it does not.
    pub(super) fn is_expected(&self) -> bool {
        self.received.is_some()
    }

    /// Returns the version from which a watch begins with this event.
    pub(super) fn before(&self) -> ResourceVersion {
        (self.version - 1).into()
    }

    /// Returns the version from which the next run continues, if it can expect this event from the saved objects.
    pub(super) fn resume(&self) -> Option<ResourceVersion> {
        let last = self.clone().at_failure();
        let is_saved = last.is_expected() && !last.is_deletion;
        is_saved.then(|| self.before())
    }

    /// Returns whether it left an object in a state.
    pub(super) fn is(&self, object: &RawObject, is_deletion: bool) -> bool {
        let state = (object.key(), object.uid(), object.version().number().ok());
        state == (&self.key, &self.uid, Some(self.version)) && is_deletion == self.is_deletion
    }
}
