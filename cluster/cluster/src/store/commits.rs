//! The record of commits, for tests that verify what clients see.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use lariat_apimachinery::kinds::TableId;
use lariat_core::ObjectKey;
use serde_json::Value;

use super::state::StoreState;
use super::{Event, EventType, Snapshot, Store, Stored};

/// One entry of [`Commits`](crate::Commits).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::cluster::{Cluster, Commit, testing::config_map};
///
/// let cluster = Cluster::builder().start().await?;
/// let commits = cluster.commits();
/// config_map("settings", &[]).create(&cluster.client()).await?;
/// let is_settings = |commit: &Commit| match commit {
///     Commit::Stored(object) => object.resource() == "configmaps" && object.key().name() == "settings",
///     _ => false,
/// };
/// assert_eq!(commits.take().iter().filter(|commit| is_settings(commit)).count(), 1);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Commit {
    /// An object was created or changed.
    Stored(StoredObject),
    /// An object was removed.
    Removed {
        /// The state it had, under the version of the removal.
        last: StoredObject,
    },
    /// The whole content was replaced.
    ///
    /// See [`Cluster::rewind_to`](crate::Cluster::rewind_to). Versions may have gone back. What the cluster holds from
    /// then on follows as [`Commit::Stored`].
    Reset {
        /// The version of the cluster from then on.
        revision: u64,
    },
}

/// One state of one object, as the server stores it.
///
/// It shares the bytes that the cluster sends to readers, so a clone is cheap. It is immutable: later changes of the
/// object do not affect it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::ObjectKey;
/// use lariat::cluster::Cluster;
///
/// let cluster = Cluster::builder().start().await?;
/// let namespace = cluster.object("namespaces", &ObjectKey::cluster("default")).expect("it always exists");
/// assert_eq!(namespace.resource(), "namespaces");
/// assert_eq!(namespace.value()["metadata"]["uid"], namespace.uid());
/// assert!(!namespace.is_deleting());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct StoredObject {
    table: Arc<str>,
    stored: Arc<Stored>,
}

impl StoredObject {
    /// Returns the resource: plural, a dot and the group; the core group has no dot.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.table
    }

    /// Returns the namespace and the name.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        self.stored.key()
    }

    /// Returns the uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.stored.uid()
    }

    /// Returns the resource version.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.stored.revision()
    }

    /// Returns whether it has a deletion timestamp.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.stored.is_deleting()
    }

    /// Returns the labels.
    #[must_use]
    pub fn labels(&self) -> &lariat_core::Labels {
        self.stored.labels()
    }

    /// Returns the JSON the server stores, in the version of the API it is stored in.
    ///
    /// It has the version in which the object was written last, which for a kind with several versions
    /// need not be the one a client reads. `managedFields` are included. Nothing is copied.
    #[must_use]
    pub fn json(&self) -> Bytes {
        self.stored.json()
    }

    /// Decodes the [JSON](Self::json).
    #[must_use]
    pub fn value(&self) -> Value {
        Value::Object(self.stored.object())
    }
}

impl fmt::Debug for StoredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What an object says may be secret.
        f.debug_struct("StoredObject")
            .field("resource", &self.resource())
            .field("key", self.key())
            .field("uid", &self.uid())
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

/// The recorder of commits; off until it is asked for.
#[derive(Debug, Default)]
pub(super) struct Recorder(Option<Vec<Commit>>);

impl Recorder {
    pub(super) fn note(&mut self, table: &Arc<str>, event: &Event) {
        if let Some(recorded) = &mut self.0 {
            let object = StoredObject {
                table: Arc::clone(table),
                stored: Arc::clone(&event.object),
            };
            recorded.push(match event.event {
                EventType::Deleted => Commit::Removed { last: object },
                EventType::Added | EventType::Modified => Commit::Stored(object),
            });
        }
    }
}

impl StoreState {
    /// Records that a snapshot replaced everything, and its objects.
    pub(super) fn record_reset(&mut self) {
        if let Some(recorded) = &mut self.recorder.0 {
            recorded.push(Commit::Reset {
                revision: self.revision,
            });
            for table in &self.tables {
                let objects = table.objects.values().map(|stored| StoredObject {
                    table: Arc::clone(&table.name),
                    stored: Arc::clone(stored),
                });
                recorded.extend(objects.map(Commit::Stored));
            }
        }
    }
}

impl Store {
    /// Begins to record commits; the stored objects come first.
    pub(crate) fn record_commits(&self) {
        let mut state = self.state.lock();
        // Under one lock with the objects that follow: no commit is missed or recorded twice between the two.
        state.recorder.0 = Some(Vec::new());
        state.record_reset();
    }

    /// Returns the commits recorded since the last call.
    pub(crate) fn take_commits(&self) -> Vec<Commit> {
        let mut state = self.state.lock();
        state
            .recorder
            .0
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Returns the objects of a resource in the order of their keys.
    pub(crate) fn objects(&self, resource: &str) -> Vec<StoredObject> {
        let state = self.state.lock();
        let id = state.table_ids.get(table_name(resource));
        let table = id.map(|TableId(at)| &state.tables[*at]);
        let objects = table.into_iter().flat_map(|table| {
            let objects = table.objects.values();
            objects.map(|stored| stored_object(&table.name, stored))
        });
        objects.collect()
    }

    /// Returns one object of a resource.
    pub(crate) fn object(&self, resource: &str, key: &ObjectKey) -> Option<StoredObject> {
        let state = self.state.lock();
        let TableId(at) = state.table_ids.get(table_name(resource))?;
        let table = &state.tables[*at];
        let stored = table.objects.get(key)?;
        Some(stored_object(&table.name, stored))
    }
}

impl Snapshot {
    /// Iterates over the objects of a resource in the order of their keys.
    ///
    /// The resource is named as for [`Cluster::objects`](crate::Cluster::objects).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// let snapshot = cluster.snapshot();
    /// cluster.shutdown().await;
    /// assert!(snapshot.objects_of("namespaces").any(|namespace| namespace.key().name() == "default"));
    /// # Ok(()) }
    /// ```
    pub fn objects_of(&self, resource: &str) -> impl Iterator<Item = StoredObject> + use<'_> {
        let objects = self.objects_in(table_name(resource));
        objects.map(|(table, stored)| stored_object(table, stored))
    }
}

fn stored_object(table: &Arc<str>, stored: &Arc<Stored>) -> StoredObject {
    StoredObject {
        table: Arc::clone(table),
        stored: Arc::clone(stored),
    }
}

/// Returns the name of the table of a resource; both groups of Events share one.
fn table_name(resource: &str) -> &str {
    match resource {
        "events.events.k8s.io" => "events",
        other => other,
    }
}
