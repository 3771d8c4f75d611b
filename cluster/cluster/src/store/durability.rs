//! Changes that are committed but not on disk yet.
//!
//! A commit takes its revision and its place in memory at once, so that the next writer builds on it.
//! Clients do not see it before it is on disk: watchers are shown no event above what is
//! [visible](StoreState::visible), and no request is answered before the store has [settled](Store::settled).
//! One [writer](crate::persist) takes everything that is unwritten at a time, so that requests which
//! come together share one write to the disk.

use std::sync::Arc;

use lariat_apimachinery::kinds::TableId;
use lariat_apimachinery::object::Object;
use lariat_core::ObjectKey;
use tokio::sync::{Notify, watch};

use super::state::StoreState;
use super::{Draft, Event, EventType, Snapshot, Store};

/// Changes that wait for the disk.
///
/// There are none unless the store [is kept](Store::make_durable).
#[derive(Debug, Default)]
pub(super) struct PendingRecords {
    is_durable: bool,
    /// In the order in which it happened.
    records: Vec<Record>,
    /// The tables of these records.
    tables: Vec<TableId>,
    /// The revision up to which everything is on disk.
    visible: u64,
    /// The number of times that a snapshot replaced everything.
    resets: u64,
}

/// The progress of writing to disk.
#[derive(Debug, Default)]
pub(super) struct Durability {
    is_durable: bool,
    /// Wakes the log writer.
    record_pending: Notify,
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Clone, Default)]
struct Progress {
    /// Everything up to this place in the sequence is on disk.
    sequence: u64,
    failures: u64,
    failure: Option<Arc<str>>,
    /// Nothing is written any more.
    closed: bool,
}

/// Something to write down.
#[derive(Debug)]
pub(crate) enum Record {
    /// A change of an object of the named resource.
    Change(Arc<str>, Arc<Event>),
    /// The revision was raised.
    Revision(u64),
    /// The history up to a revision was forgotten.
    Compaction(u64),
    /// Everything is as in a snapshot, and nothing was before.
    Reset(Snapshot),
}

/// The records that are written in one transaction.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    tables: Vec<TableId>,
    sequence: u64,
    revision: u64,
    resets: u64,
}

/// A change that is read back.
#[derive(Debug)]
pub(crate) struct LoggedChange {
    pub(crate) resource: String,
    pub(crate) revision: u64,
    pub(crate) event: EventType,
    pub(crate) key: ObjectKey,
    /// The new state, which a deletion does not have.
    pub(crate) object: Option<Object>,
}

/// The error of a commit that may not be on disk.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotDurable {
    #[error("{0}")]
    Failed(Arc<str>),
    #[error("the cluster has been shut down")]
    Closed,
}

impl Store {
    /// Shows no commit from now on before it is on disk.
    pub(crate) fn make_durable(&mut self) {
        self.durability.is_durable = true;
        let state = self.state.get_mut();
        state.pending.is_durable = true;
        // What is there already was read from the disk.
        state.pending.visible = state.revision;
    }

    /// Sets the revision at which a store without objects continues.
    pub(crate) fn begin_at(&mut self, revision: u64, floor: u64) {
        let state = self.state.get_mut();
        state.revision = revision.max(state.revision);
        state.floor = floor;
        state.compacted = floor;
    }

    /// Replays a change, the oldest first; the error is why it cannot have happened.
    pub(crate) fn replay(&mut self, logged: LoggedChange) -> Result<(), &'static str> {
        let state = self.state.get_mut();
        let id = state.table(&logged.resource);
        let table = &mut state.tables[id.0];
        let previous = table.objects.get(&logged.key).cloned();
        let object = match (logged.object, &previous) {
            (Some(object), _) => Draft::new(&object).stamp(logged.revision, logged.event),
            (None, Some(last)) => last.with_version(logged.revision, logged.event),
            (None, None) => return Err("it deletes an object that is not there"),
        };
        if *object.key() != logged.key {
            return Err("its key is not that of its object");
        }
        let event = Arc::new(Event {
            revision: logged.revision,
            event: logged.event,
            object: Arc::new(object),
            previous,
        });
        table.set(&event);
        // Older changes shape the objects only: no watch may begin before the floor.
        if logged.revision > state.floor {
            state.remember(id, event);
        }
        state.revision = state.revision.max(logged.revision);
        Ok(())
    }

    /// Waits until everything that is committed now is on disk.
    ///
    /// # Cancel safety
    ///
    /// It only waits.
    pub(crate) async fn settled(&self) -> Result<(), NotDurable> {
        if !self.durability.is_durable {
            return Ok(());
        }
        // The sequence and not the revision: a rewind lowers the revision, and a request before it must not be answered
        // by the writes after it.
        let wanted = self.sequence();
        let mut progress = self.durability.progress.subscribe();
        // Only a failure from now on concerns this request; an older one may have been repaired by a retry.
        let before = progress.borrow().failures;
        let end = progress
            .wait_for(|progress| {
                progress.sequence >= wanted || progress.closed || progress.failures > before
            })
            .await
            .map_err(|_| NotDurable::Closed)?;
        match &end.failure {
            // First, because a batch may have been written just before the store was closed.
            _ if end.sequence >= wanted => Ok(()),
            Some(reason) if !end.closed => Err(NotDurable::Failed(Arc::clone(reason))),
            _ => Err(NotDurable::Closed),
        }
    }

    /// Waits until something is to be written.
    pub(crate) async fn record_pending(&self) {
        self.durability.record_pending.notified().await;
    }

    /// Takes the pending records as a batch, if there are any.
    pub(crate) fn take_batch(&self) -> Option<Batch> {
        let mut state = self.state.lock();
        if state.pending.records.is_empty() {
            return None;
        }
        Some(Batch {
            records: std::mem::take(&mut state.pending.records),
            tables: std::mem::take(&mut state.pending.tables),
            sequence: state.sequence,
            revision: state.revision,
            resets: state.pending.resets,
        })
    }

    /// Announces and answers a batch that is on disk.
    pub(crate) fn written(&self, batch: &Batch) {
        let mut state = self.state.lock();
        // What was written before a rewind says nothing of the revisions that are used again.
        if batch.resets == state.pending.resets {
            state.pending.visible = batch.revision;
        }
        // Watchers are notified only now: before, their read would have found the events but not been allowed to send
        // them.
        for table in &batch.tables {
            state.announce(*table);
        }
        drop(state);
        self.durability.progress.send_modify(|progress| {
            progress.sequence = batch.sequence;
            progress.failure = None;
        });
        self.committed.notify_one();
    }

    /// Notifies those that wait that the disk does not take a batch.
    pub(crate) fn not_written(&self, reason: &str) {
        self.durability.progress.send_modify(|progress| {
            progress.failures += 1;
            progress.failure = Some(Arc::from(reason));
        });
    }

    /// Notifies those that wait, now or later, that nothing is written any more.
    pub(crate) fn close(&self) {
        let close = |progress: &mut Progress| progress.closed = true;
        self.durability.progress.send_modify(close);
    }

    /// Wakes the task that handles a commit next: the log writer, or the dispatcher.
    pub(super) fn wake(&self) {
        if self.durability.is_durable {
            self.durability.record_pending.notify_one()
        } else {
            self.committed.notify_one()
        }
    }
}

impl StoreState {
    /// Returns the revision up to which events may be shown.
    pub(super) fn visible(&self) -> u64 {
        if self.pending.is_durable {
            // What was visible before a rewind may be above all there is now.
            self.pending.visible.min(self.revision)
        } else {
            self.revision
        }
    }

    pub(super) fn note_change(&mut self, id: TableId, event: &Arc<Event>) {
        if !self.pending.is_durable {
            self.sequence += 1;
            return self.announce(id);
        }
        let name = Arc::clone(&self.tables[id.0].name);
        self.note(|| Record::Change(name, Arc::clone(event)));
        if !self.pending.tables.contains(&id) {
            self.pending.tables.push(id);
        }
    }

    pub(super) fn note_revision(&mut self) {
        let revision = self.revision;
        self.note(|| Record::Revision(revision));
    }

    pub(super) fn note_compaction(&mut self) {
        let revision = self.revision;
        self.note(|| Record::Compaction(revision));
    }

    pub(super) fn note_reset(&mut self, snapshot: &Snapshot) {
        // Of what comes after it nothing is on disk, whatever was before.
        self.pending.visible = self.pending.visible.min(self.revision);
        self.pending.resets += 1;
        self.note(|| Record::Reset(snapshot.clone()));
    }

    fn note(&mut self, record: impl FnOnce() -> Record) {
        self.sequence += 1;
        if self.pending.is_durable {
            self.pending.records.push(record());
        }
    }
}
