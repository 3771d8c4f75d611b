//! The state that the lock guards: the tables, the revision, and how changes enter them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lariat_apimachinery::kinds::TableId;
use lariat_core::ObjectKey;
use tokio::sync::watch;

use super::commits::Recorder;
use super::durability::PendingRecords;
use super::history::History;
use super::retention::Retention;
use super::{Change, Changes, Event, EventType, Signal, Stored, Write, WriteError};

/// The first revision of a store.
///
/// Smaller ones are older than any history, as on a server that has been up for a while.
pub(super) const FIRST_REVISION: u64 = 500;

#[derive(Debug)]
pub(super) struct StoreState {
    pub(super) revision: u64,
    /// Counts changes of any kind. Unlike the revision it never goes back.
    pub(super) sequence: u64,
    /// The history of a new table is complete from here on.
    pub(super) floor: u64,
    /// Earlier states cannot be read, as after a compaction of etcd.
    pub(super) compacted: u64,
    pub(super) retention: Retention,
    /// The memory that the histories of all tables keep.
    pub(super) history_bytes: usize,
    pub(super) tables: Vec<ResourceTable>,
    pub(super) table_ids: HashMap<String, TableId>,
    /// Tables with changes the dispatcher has not announced.
    pub(super) unannounced: Vec<TableId>,
    /// The changes that the control plane has not observed yet.
    pub(super) changes: Changes,
    /// The records that are not on disk yet, and so are neither announced nor answered.
    pub(super) pending: PendingRecords,
    /// The commits that are recorded for whoever checks the cluster.
    pub(super) recorder: Recorder,
}

/// The objects of one resource, in all the versions it is served in.
#[derive(Debug)]
pub(super) struct ResourceTable {
    pub(super) name: Arc<str>,
    pub(super) objects: BTreeMap<ObjectKey, Arc<Stored>>,
    pub(super) history: History,
    pub(super) signal: watch::Sender<Signal>,
}

impl StoreState {
    pub(super) fn new(retention: Retention) -> Self {
        Self {
            revision: FIRST_REVISION,
            sequence: 0,
            floor: FIRST_REVISION,
            compacted: FIRST_REVISION,
            retention,
            history_bytes: 0,
            tables: Vec::new(),
            table_ids: HashMap::new(),
            unannounced: Vec::new(),
            changes: Changes::default(),
            pending: PendingRecords::default(),
            recorder: Recorder::default(),
        }
    }

    pub(super) fn check_namespace(&self, write: &Write<'_>) -> Result<(), WriteError> {
        let (Some(namespaces), Some(name)) = (write.namespaces, write.key.namespace()) else {
            return Ok(());
        };
        // A namespace is cluster-scoped: its bare name is its key.
        match self.tables[namespaces.0].objects.get(name) {
            None => Err(WriteError::NamespaceMissing),
            Some(namespace) if namespace.is_deleting() => Err(WriteError::NamespaceTerminating),
            Some(_) => Ok(()),
        }
    }

    pub(super) fn table(&mut self, name: &str) -> TableId {
        if let Some(id) = self.table_ids.get(name) {
            return *id;
        }
        let id = TableId(self.tables.len());
        self.tables.push(ResourceTable {
            name: Arc::from(name),
            objects: BTreeMap::new(),
            // A table that is made late, for a custom kind, has no events before it; its history is complete from the
            // last compaction on.
            history: History::new(self.floor, self.retention.changes),
            signal: watch::Sender::new(Signal::default()),
        });
        self.table_ids.insert(name.to_owned(), id);
        id
    }

    /// Stores a new state of an object under the next revision.
    pub(super) fn put(
        &mut self,
        id: TableId,
        previous: Option<Arc<Stored>>,
        stamp: impl FnOnce(u64, EventType) -> Stored,
    ) -> Arc<Stored> {
        let event = match previous {
            None => EventType::Added,
            Some(_) => EventType::Modified,
        };
        let revision = self.revision + 1;
        self.record(
            id,
            Event {
                revision,
                event,
                object: Arc::new(stamp(revision, event)),
                previous,
            },
        )
    }

    /// Removes an object under the next revision.
    pub(super) fn remove(&mut self, id: TableId, last: Arc<Stored>) -> Arc<Stored> {
        let revision = self.revision + 1;
        let event = EventType::Deleted;
        self.record(
            id,
            Event {
                revision,
                event,
                object: Arc::new(last.with_version(revision, event)),
                previous: Some(last),
            },
        )
    }

    fn record(&mut self, id: TableId, event: Event) -> Arc<Stored> {
        self.revision = event.revision;
        let object = Arc::clone(&event.object);
        let event = Arc::new(event);
        // Objects, history, recorder, disk and control plane learn of the change under one lock, so all of them have
        // the same order.
        self.tables[id.0].set(&event);
        self.remember(id, Arc::clone(&event));
        self.recorder.note(&self.tables[id.0].name, &event);
        self.note_change(id, &event);
        self.changes.list.push(Change { table: id, event });
        object
    }

    /// Adds a change to the history, and drops old ones beyond the bounds.
    ///
    /// Changes beyond the memory are dropped from the resource whose changes are largest together: one that changes
    /// much takes nothing from the others. The last change of each stays, since watchers have to see it.
    pub(super) fn remember(&mut self, id: TableId, event: Arc<Event>) {
        let history = &mut self.tables[id.0].history;
        // Taken off and added again, because the push may drop an event of this history.
        self.history_bytes -= history.bytes();
        history.push(event);
        self.history_bytes += history.bytes();
        while self.history_bytes > self.retention.bytes {
            let histories = self.tables.iter_mut().map(|table| &mut table.history);
            // Without this a single change larger than the bound would empty the history, itself included, before a
            // watcher saw it.
            let spare = histories.filter(|history| history.len() > 1);
            let Some(largest) = spare.max_by_key(|history| history.bytes()) else {
                return;
            };
            self.history_bytes -= largest.bytes();
            largest.drop_oldest();
            self.history_bytes += largest.bytes();
        }
    }

    /// Counts the bytes of the history, after some of it was dropped.
    pub(super) fn count_history(&mut self) {
        let tables = self.tables.iter();
        self.history_bytes = tables.map(|table| table.history.bytes()).sum();
    }

    /// Shows the control plane everything that is stored, as if it were new.
    pub(super) fn replay_changes(&mut self) {
        let tables = self.tables.iter().enumerate();
        let objects = tables.flat_map(|(at, table)| {
            let objects = table.objects.values();
            objects.map(move |object| (TableId(at), Arc::clone(object)))
        });
        let added = |(table, object): (TableId, Arc<Stored>)| Change {
            table,
            event: Arc::new(Event {
                revision: object.revision(),
                event: EventType::Added,
                object,
                previous: None,
            }),
        };
        // What was not taken yet is replaced, not extended: the control plane starts over from the whole.
        self.changes = Changes {
            is_complete: true,
            list: objects.map(added).collect(),
        };
    }

    /// Marks a table for an announcement, now that its changes may be seen.
    pub(super) fn announce(&mut self, id: TableId) {
        // Few tables change between two rounds, so that a search through the list is cheap.
        if !self.unannounced.contains(&id) {
            self.unannounced.push(id);
        }
    }
}

impl ResourceTable {
    pub(super) fn set(&mut self, event: &Event) {
        let key = event.object.key();
        match event.event {
            EventType::Deleted => drop(self.objects.remove(key)),
            _ => drop(self.objects.insert(key.clone(), Arc::clone(&event.object))),
        }
    }
}
