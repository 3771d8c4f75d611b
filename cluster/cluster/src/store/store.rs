//! The store itself: one lock around the state, and what wakes readers after a commit.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lariat_apimachinery::kinds::TableId;
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::durability::Durability;
use super::history::Event;
use super::object::Stored;
use super::range::{Expired, KeyBounds, Page, Range, page_of};
use super::retention::{ReadLimit, Retention};
use super::state::StoreState;
use super::write::{Changes, Ending, Signal, Write, WriteError};

/// The highest revision that can be skipped to.
///
/// It leaves room for any number of writes.
const HIGHEST_REVISION: u64 = 1 << 62;

#[derive(Debug)]
pub(crate) struct Store {
    pub(super) state: Mutex<StoreState>,
    /// Wakes the dispatcher.
    pub(super) committed: Notify,
    /// Counts what the dispatcher announced about any table.
    commits: watch::Sender<u64>,
    pub(super) durability: Durability,
}

impl Store {
    pub(crate) fn new(retention: Retention) -> Self {
        Self {
            state: Mutex::new(StoreState::new(retention)),
            committed: Notify::new(),
            commits: watch::Sender::new(0),
            durability: Durability::default(),
        }
    }

    /// Returns the table of a resource, which is made on first use.
    pub(crate) fn table(&self, name: &str) -> TableId {
        self.state.lock().table(name)
    }

    pub(crate) fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    /// Returns how many changes of any kind there were; it never goes back.
    pub(crate) fn sequence(&self) -> u64 {
        self.state.lock().sequence
    }

    pub(crate) fn get(&self, table: TableId, key: &ObjectKey) -> Option<Arc<Stored>> {
        self.state.lock().tables[table.0].objects.get(key).cloned()
    }

    /// Returns whether tables have no object.
    pub(crate) fn are_empty(&self, tables: &[TableId]) -> bool {
        let state = self.state.lock();
        let is_empty = |table: &TableId| state.tables[table.0].objects.is_empty();
        tables.iter().all(is_empty)
    }

    /// Commits one write, or returns why not.
    ///
    /// A removal returns the last state under its new revision.
    pub(crate) fn commit(&self, write: Write<'_>) -> Result<Arc<Stored>, WriteError> {
        let mut state = self.state.lock();
        // Checked under the lock of the write: a namespace that starts to terminate after admission has looked must get
        // no new object, or its controller, having found it empty, would leave that object behind.
        state.check_namespace(&write)?;
        // `Relaxed` is enough: the sweep takes this lock after the flag is set. Either this write comes first and the
        // sweep finds its object, or it comes later and sees the flag.
        if write
            .terminating
            .is_some_and(|flag| flag.load(Ordering::Relaxed))
        {
            return Err(WriteError::KindTerminating);
        }
        let current = state.tables[write.table.0].objects.get(write.key).cloned();
        // Every write is a compare-and-swap on what its writer read, as a transaction on `mod_revision` in etcd. The
        // caller decides whether a race is a conflict for the client or a reason to try again.
        if current.as_ref().map(|stored| stored.revision()) != write.expected {
            return Err(WriteError::Raced);
        }
        let object = match (current, write.draft) {
            // There is nothing to remove. The caller reads again, and answers that.
            (None, None) => return Err(WriteError::Raced),
            (Some(last), None) => state.remove(write.table, last),
            (previous, Some(draft)) => {
                let stamp = |revision, event| draft.stamp(revision, event);
                state.put(write.table, previous, stamp)
            }
        };
        // Woken without the lock, which the task that wakes takes first.
        drop(state);
        self.wake();
        Ok(object)
    }

    /// Reads a range of a table.
    pub(crate) fn range(&self, table: TableId, range: &Range<'_>) -> Result<Page, Expired> {
        let state = self.state.lock();
        let table = &state.tables[table.0];
        // Two floors: the table may have dropped changes beyond its limits, and the age may have expired old states of
        // all tables, also of those that have dropped nothing because nothing changed.
        let oldest = table.history.floor().max(state.compacted);
        let mut revision = range.at.unwrap_or(state.revision);
        if range.or_oldest {
            revision = revision.max(oldest);
        }
        if revision < oldest {
            return Err(Expired);
        }
        // Each write asks for quotas and webhooks, of which most clusters have none.
        if range.at.is_none() && table.objects.is_empty() {
            return Ok(page_of(std::iter::empty(), range, revision));
        }
        // A past state is the present one with later changes undone, so nothing but the changes has to be kept.
        let then = match range.at {
            Some(_) => table.history.undone_to(revision),
            None => BTreeMap::new(),
        };
        let bounds = KeyBounds::of(range);
        let now = table.objects.range::<str, _>(bounds.as_bounds());
        if then.is_empty() {
            return Ok(page_of(now.map(|(_, stored)| stored), range, revision));
        }
        let gone = then.range::<str, _>(bounds.as_bounds());
        let unchanged = now.filter(|(key, _)| !then.contains_key(*key));
        let mut objects: Vec<&Arc<Stored>> = unchanged.map(|(_, stored)| stored).collect();
        objects.extend(gone.filter_map(|(_, stored)| stored.as_ref()));
        // Undone objects came last; pages and continue tokens need the order of keys.
        objects.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        Ok(page_of(objects.into_iter(), range, revision))
    }

    /// Returns whether a watch may begin at a revision.
    pub(crate) fn reaches(&self, table: TableId, revision: u64) -> bool {
        self.state.lock().tables[table.0].history.reaches(revision)
    }

    /// Returns the first events after a revision.
    ///
    /// Also returns the revision up to which they are complete.
    ///
    /// Without an event there is none up to the latter, which is the last that may be seen. Who has read up to the
    /// given revision misses nothing, even if it has expired.
    pub(crate) fn events(
        &self,
        table: TableId,
        after: u64,
        limit: ReadLimit,
    ) -> Result<(Vec<Arc<Event>>, u64), Expired> {
        let state = self.state.lock();
        let history = &state.tables[table.0].history;
        if !history.continues(after) {
            return Err(Expired);
        }
        // The history may already have events that are not on disk. A watcher that sent one of them would show a write
        // that a crash undoes.
        let visible = state.visible();
        let (mut events, is_all) = history.after(after, limit);
        let shown = events.partition_point(|event| event.revision <= visible);
        // Only at the end of what may be seen can the cursor go past the last event, to the revision of other
        // resources; after a limit it must stop at the last event, since more of this resource follow.
        let is_end = is_all || shown < events.len();
        events.truncate(shown);
        let last = events.last().map(|event| event.revision);
        let complete_to = last.filter(|_| !is_end).unwrap_or(visible.max(after));
        Ok((events, complete_to))
    }

    /// Returns the revision from which on the history of a table is complete.
    pub(crate) fn oldest(&self, table: TableId) -> u64 {
        self.state.lock().tables[table.0].history.floor()
    }

    /// Takes all changes since the last call; only the control plane calls it.
    pub(crate) fn take_changes(&self) -> Changes {
        std::mem::take(&mut self.state.lock().changes)
    }

    /// Makes the control plane start over with everything that is stored.
    pub(crate) fn replay_changes(&self) {
        self.state.lock().replay_changes();
    }

    /// Subscribes to announcements about any table.
    pub(crate) fn commits(&self) -> watch::Receiver<u64> {
        self.commits.subscribe()
    }

    /// Subscribes to announcements about a table.
    pub(crate) fn subscribe(&self, table: TableId) -> watch::Receiver<Signal> {
        self.state.lock().tables[table.0].signal.subscribe()
    }

    /// Counts the open watches.
    pub(crate) fn watches(&self) -> usize {
        let state = self.state.lock();
        let tables = state.tables.iter();
        tables.map(|table| table.signal.receiver_count()).sum()
    }

    /// Ends the open watches of one table, or of all.
    pub(crate) fn end_watches(&self, table: Option<TableId>, ending: Ending) {
        let state = self.state.lock();
        for (at, each) in state.tables.iter().enumerate() {
            if table.is_none_or(|table| table.0 == at) {
                each.signal.send_modify(|signal| {
                    signal.ended += 1;
                    signal.ending = ending;
                });
            }
        }
    }

    /// Forgets all history, so that watches and exact reads from before are expired.
    pub(crate) fn compact(&self) {
        let mut state = self.state.lock();
        let revision = state.revision;
        state.floor = revision;
        for table in &mut state.tables {
            table.history.compact(revision);
        }
        state.count_history();
        state.note_compaction();
        drop(state);
        self.wake();
    }

    /// Drops changes up to a revision because of their age, and expires older states.
    ///
    /// A watch may still begin at an older revision, if the objects it is about have not changed since. `unread` has
    /// for each table up to where all open watchers have read.
    pub(crate) fn age_out(&self, revision: u64, unread: &HashMap<TableId, u64>) {
        let mut state = self.state.lock();
        // What is not on disk yet has been shown to no watcher.
        let revision = revision.min(state.visible());
        state.compacted = state.compacted.max(revision);
        for (at, table) in state.tables.iter_mut().enumerate() {
            let unread = unread.get(&TableId(at)).copied();
            table.history.age(revision, unread);
        }
        state.count_history();
    }

    /// Expires the history of a table.
    ///
    /// Watchers that are open continue.
    pub(crate) fn expire(&self, table: TableId) {
        let mut state = self.state.lock();
        let revision = state.revision;
        state.tables[table.0].history.expire(revision);
    }

    /// Leaves out some revisions, as if other resources had used them.
    pub(crate) fn skip_revisions(&self, revisions: u64) {
        let mut state = self.state.lock();
        let raised = state.revision.saturating_add(revisions);
        // A revision above the limit stays: revisions never go back, whatever a client asks for.
        state.revision = raised.min(HIGHEST_REVISION).max(state.revision);
        state.note_revision();
        drop(state);
        self.wake();
    }

    /// Returns the revision so many events before another one.
    pub(crate) fn rewind(&self, table: TableId, revision: u64, events: usize) -> u64 {
        self.state.lock().tables[table.0]
            .history
            .rewind(revision, events)
    }

    /// Announces commits to watchers, for ever.
    pub(crate) async fn dispatch(&self) {
        loop {
            // `Notify` keeps one permit: a commit between two rounds is not lost, and any number of commits during a
            // round lead to one more round.
            self.committed.notified().await;
            let signals: Vec<watch::Sender<Signal>> = {
                let mut state = self.state.lock();
                let changed = std::mem::take(&mut state.unannounced);
                changed
                    .iter()
                    .map(|table| state.tables[table.0].signal.clone())
                    .collect()
            };
            // Sent without the lock: watchers that wake read events, which takes it.
            for signal in signals {
                signal.send_modify(|signal| signal.announced += 1);
            }
            // The control plane waits for this one, after the watchers of single tables are notified.
            self.commits.send_modify(|commits| *commits += 1);
        }
    }
}
