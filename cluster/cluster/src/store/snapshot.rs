//! Snapshots of the contents of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use lariat_apimachinery::kinds::TableId;
use lariat_core::ObjectKey;

use super::history::History;
use super::retention::Retention;
use super::state::StoreState;
use super::{Ending, Store, Stored};

/// The objects of a whole cluster as they were at one moment.
///
/// It shares the objects with the cluster: taking a snapshot copies only their keys, and a clone is cheap. It may
/// outlive its cluster. Other clusters can [start from it](crate::ClusterBuilder::from_snapshot) or
/// be [restored](crate::Cluster::restore) to it. Custom kinds are in it with their
/// CustomResourceDefinitions.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::cluster::Cluster;
///
/// let cluster = Cluster::builder().start().await?;
/// let snapshot = cluster.snapshot();
/// assert!(snapshot.objects() > 0, "the objects that every cluster has");
/// assert_eq!(snapshot.resource_version(), cluster.revision().to_string());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Snapshot {
    content: Arc<Content>,
}

struct Content {
    revision: u64,
    /// By the name of the resource; no table is empty.
    tables: BTreeMap<Arc<str>, Objects>,
}

type Objects = BTreeMap<ObjectKey, Arc<Stored>>;

impl Snapshot {
    /// Returns the number of objects, including those of every new cluster.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.content.tables.values().map(BTreeMap::len).sum()
    }

    /// Returns the resource version of the moment it was taken.
    #[must_use]
    pub fn resource_version(&self) -> String {
        self.content.revision.to_string()
    }

    pub(crate) fn revision(&self) -> u64 {
        self.content.revision
    }

    /// Iterates over the objects by revision, with the names of their resources.
    #[cfg(feature = "sqlite")]
    pub(crate) fn in_order(&self) -> Vec<(&str, &Arc<Stored>)> {
        let tables = self.content.tables.iter();
        let mut objects: Vec<_> = tables
            .flat_map(|(name, objects)| objects.values().map(|stored| (&**name, stored)))
            .collect();
        objects.sort_unstable_by_key(|(_, stored)| stored.revision());
        objects
    }

    /// Iterates over the objects of a table, each with the name of the table.
    pub(super) fn objects_in(
        &self,
        table: &str,
    ) -> impl Iterator<Item = (&Arc<str>, &Arc<Stored>)> + use<'_> {
        let table = self.content.tables.get_key_value(table).into_iter();
        table.flat_map(|(name, objects)| objects.values().map(move |stored| (name, stored)))
    }

    fn table(&self, name: &str) -> Objects {
        self.content.tables.get(name).cloned().unwrap_or_default()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("resource_version", &self.content.revision)
            .field("objects", &self.objects())
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Makes a store that begins with a snapshot.
    pub(crate) fn seeded(retention: Retention, snapshot: &Snapshot) -> Self {
        let store = Self::new(retention);
        store.rewind_to(snapshot);
        store
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.state.lock();
        let tables = state
            .tables
            .iter()
            .filter(|table| !table.objects.is_empty());
        let content = Content {
            revision: state.revision,
            tables: tables
                .map(|table| (Arc::clone(&table.name), table.objects.clone()))
                .collect(),
        };
        Snapshot {
            content: Arc::new(content),
        }
    }

    /// Restores a snapshot by changes with new revisions.
    ///
    /// No other change comes between them.
    pub(crate) fn restore(&self, snapshot: &Snapshot) {
        let mut state = self.state.lock();
        // A snapshot of another cluster may have custom kinds that this one has not stored yet.
        state.add_tables(snapshot);
        // Tables that the snapshot does not have are emptied.
        for at in 0..state.tables.len() {
            let wanted = snapshot.table(&state.tables[at].name);
            state.restore_table(TableId(at), &wanted);
        }
        drop(state);
        self.wake();
    }

    /// Becomes the store of a snapshot, revision and all, and cuts every watch.
    pub(crate) fn rewind_to(&self, snapshot: &Snapshot) {
        let mut state = self.state.lock();
        state.add_tables(snapshot);
        // Only the revision goes back. The sequence, by which requests wait for the disk, counts on.
        state.revision = snapshot.revision();
        state.floor = snapshot.revision();
        state.compacted = snapshot.revision();
        let changes = state.retention.changes;
        for table in &mut state.tables {
            table.objects = snapshot.table(&table.name);
            // Its events have revisions that will be used again for other changes, so none of them may be sent.
            table.history = History::new(snapshot.revision(), changes);
            // All watches, also of tables without a change: their cursors are revisions of the history that is gone.
            table.signal.send_modify(|signal| {
                signal.ended += 1;
                signal.ending = Ending::Cut;
            });
        }
        state.count_history();
        // The control plane built its state from objects that may be gone, and no deletion tells it.
        state.replay_changes();
        state.record_reset();
        state.note_reset(snapshot);
        drop(state);
        self.wake();
    }

    /// Counts the objects of each resource that has any, by its name.
    pub(crate) fn count_by_resource(&self) -> BTreeMap<Arc<str>, usize> {
        let state = self.state.lock();
        let tables = state.tables.iter();
        tables
            .filter(|table| !table.objects.is_empty())
            .map(|table| (Arc::clone(&table.name), table.objects.len()))
            .collect()
    }
}

impl StoreState {
    fn add_tables(&mut self, snapshot: &Snapshot) {
        for name in snapshot.content.tables.keys() {
            self.table(name);
        }
    }

    fn restore_table(&mut self, id: TableId, wanted: &Objects) {
        // A copy, since the table changes while the two are compared.
        let present = self.tables[id.0].objects.clone();
        let keys: BTreeSet<&ObjectKey> = present.keys().chain(wanted.keys()).collect();
        for key in keys {
            let mut is = present.get(key).cloned();
            let wanted = wanted.get(key);
            // An object of the same name with another uid is another object: it goes, then this one comes.
            let uid = wanted.map(|wanted| wanted.uid());
            if let Some(last) = is.take_if(|is| Some(is.uid()) != uid) {
                self.remove(id, last);
            }
            let Some(wanted) = wanted else {
                continue;
            };
            // An object with the same content keeps its revision, so that watchers are sent only what differs.
            if !is.as_ref().is_some_and(|is| is.has_content_of(wanted)) {
                let stamp = |revision, event| wanted.with_version(revision, event);
                self.put(id, is, stamp);
            }
        }
    }
}
