//! The last event of a watch, or the newest listed object, which the next watch begins with after a failure.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::{ObjectKey, RawObject, ResourceVersion, Uid};
use tokio::time::Instant;

use crate::store::{CachedObject, Delta, Store};

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

    /// Returns the event that the first watch of a saved store begins with.
    ///
    /// An earlier run that expected its last event has saved the version before it. Otherwise it is the event of the
    /// newest object.
    pub(super) fn saved(
        store: &Store,
        namespace: Option<&str>,
        since: &ResourceVersion,
    ) -> Option<Self> {
        let next = since.number().ok()?.checked_add(1)?;
        let newest = Self::newest(store, namespace, &next.into())?;
        let is_last = newest.version == next;
        Some(Self {
            received: is_last.then(Instant::now),
            ..newest
        })
    }

    /// Returns the event of the newest object up to a version.
    ///
    /// The object is one of the namespace, if there is one.
    pub(super) fn newest(
        store: &Store,
        namespace: Option<&str>,
        reached: &ResourceVersion,
    ) -> Option<Self> {
        let reached = reached.number().ok()?;
        let snapshot = store.snapshot();
        match namespace {
            Some(namespace) => Self::newest_of(snapshot.in_namespace(namespace), reached),
            None => Self::newest_of(snapshot.iter(), reached),
        }
    }

    fn newest_of<'a>(
        objects: impl Iterator<Item = &'a Arc<CachedObject>>,
        reached: u64,
    ) -> Option<Self> {
        let (version, newest) = objects
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

    /// Returns whether every server of the same history still has it.
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
