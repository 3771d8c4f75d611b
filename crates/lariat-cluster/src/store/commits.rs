//! What was committed, for who checks a cluster from beside it.

use std::sync::Arc;

use bytes::Bytes;
use lariat_core::ObjectKey;

use super::state::State;
use super::{Event, EventType, Store, Stored, TableId};

/// One entry of [`Commits`].
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
    /// The whole content was replaced, as by [`Cluster::rewind_to`](crate::Cluster::rewind_to).
    ///
    /// Versions may have gone back. What the cluster holds from then on follows as [`Commit::Stored`].
    Reset {
        /// The version of the cluster from then on.
        revision: u64,
    },
}

/// One state of one object, as the server stores it.
#[derive(Debug, Clone)]
pub struct StoredObject {
    table: Arc<str>,
    stored: Arc<Stored>,
}

impl StoredObject {
    /// Returns the resource: its plural, and its group behind a dot unless that is the core group.
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
    #[must_use]
    pub fn json(&self) -> Bytes {
        self.stored.json()
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

impl State {
    /// Records that everything was replaced, and what there is.
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
    /// Begins to record commits; what is stored already comes first.
    pub(crate) fn record_commits(&self) {
        let mut state = self.state.lock();
        state.recorder.0 = Some(Vec::new());
        state.record_reset();
    }

    /// Takes what was recorded since the last call.
    pub(crate) fn take_commits(&self) -> Vec<Commit> {
        let mut state = self.state.lock();
        state.recorder.0.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the objects of a table in the order of their keys.
    pub(crate) fn objects(&self, name: &str) -> Vec<StoredObject> {
        let state = self.state.lock();
        let Some(TableId(at)) = state.table_ids.get(name) else {
            return Vec::new();
        };
        let table = &state.tables[*at];
        let objects = table.objects.values().map(|stored| StoredObject {
            table: Arc::clone(&table.name),
            stored: Arc::clone(stored),
        });
        objects.collect()
    }
}
