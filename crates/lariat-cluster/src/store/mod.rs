//! The store: objects by resource and key, one revision for all, and the history.
//!
//! A write takes the lock, checks that the object is still what the writer saw, stamps the next
//! revision and appends one event. It wakes one task, the [dispatcher](Store::dispatch), whatever the
//! number of watchers; these are cursors into the history and read at their own pace.

#[cfg(feature = "load")]
mod blanks;
mod commits;
mod encode;
mod history;
mod object;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
#[cfg_attr(not(feature = "sqlite"), path = "unwritten_off.rs")]
mod unwritten;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_apimachinery::kinds::TableId;
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

pub use commits::{Commit, StoredObject};
pub(crate) use history::Event;
pub(crate) use object::{Draft, EventType, METADATA_HEAD, Stored};
pub use snapshot::Snapshot;
pub(crate) use unwritten::Unsaved;
#[cfg(feature = "sqlite")]
pub(crate) use unwritten::{Batch, Past, Record};

use state::StoreState;
use unwritten::Durability;

/// The first revision of a store.
///
/// Smaller ones are older than any history, as on a server that has been up for a while.
const FIRST_REVISION: u64 = 500;

/// The highest revision that can be skipped to.
///
/// It leaves room for any number of writes.
const HIGHEST_REVISION: u64 = 1 << 62;

#[derive(Debug)]
pub(crate) struct Store {
    state: Mutex<StoreState>,
    /// Wakes the dispatcher.
    committed: Notify,
    /// Counts what the dispatcher announced about any table.
    commits: watch::Sender<u64>,
    history_capacity: usize,
    durability: Durability,
}

/// One commit, as the control plane sees it.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) table: TableId,
    pub(crate) event: Arc<Event>,
}

/// What was committed since the control plane last looked.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The changes are additions of everything that is stored, and replace those before.
    pub(crate) is_complete: bool,
    pub(crate) list: Vec<Change>,
}

/// What watchers of a table wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Signal {
    /// Counts announcements of new events.
    pub(crate) announced: u64,
    /// Counts times at which open watches had to end, and how.
    pub(crate) ended: u64,
    pub(crate) ending: Ending,
}

/// How the server ends a watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The response is complete.
    #[default]
    Clean,
    /// The response is complete, with everything that happened until then.
    Drained,
    /// The connection breaks in the middle of a line.
    Cut,
}

/// One write.
#[derive(Debug)]
pub(crate) struct Write<'a> {
    pub(crate) table: TableId,
    pub(crate) key: &'a ObjectKey,
    /// The revision the writer saw; `None` if it saw no object.
    pub(crate) expected: Option<u64>,
    /// The new state, or `None` to remove the object.
    pub(crate) draft: Option<Draft>,
    /// A table in which the key's namespace must exist and not be going away.
    pub(crate) namespaces: Option<TableId>,
    /// Refuses the write once it is set.
    ///
    /// It is read under the lock, so a sweep after setting it is final.
    pub(crate) terminating: Option<&'a AtomicBool>,
}

impl<'a> Write<'a> {
    /// Makes a write that depends on nothing but the object itself.
    pub(crate) fn new(
        table: TableId,
        key: &'a ObjectKey,
        expected: Option<u64>,
        draft: Option<Draft>,
    ) -> Self {
        Self {
            table,
            key,
            expected,
            draft,
            namespaces: None,
            terminating: None,
        }
    }
}

/// Why a write did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The object is not what the writer saw.
    Raced,
    NamespaceMissing,
    NamespaceTerminating,
    KindTerminating,
}

/// The requested revision is no longer covered by the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expired;

/// Which objects a read covers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Range<'a> {
    pub(crate) namespace: Option<&'a str>,
    /// The first key, from a continue token.
    pub(crate) start: Option<&'a str>,
    /// The revision of the state; `None` for the present.
    pub(crate) at: Option<u64>,
    /// Reads the oldest state there is if that of the revision is no longer known.
    pub(crate) or_oldest: bool,
    pub(crate) limit: Option<usize>,
    /// Does not count what lies behind the limit, which costs as much as there is.
    pub(crate) uncounted: bool,
}

/// Objects in key order as they were at one revision.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<Stored>>,
    pub(crate) revision: u64,
    /// How many objects of the range lie behind the limit.
    pub(crate) remaining: usize,
}

impl Store {
    pub(crate) fn new(history_capacity: usize) -> Self {
        Self {
            state: Mutex::new(StoreState::new()),
            committed: Notify::new(),
            commits: watch::Sender::new(0),
            history_capacity,
            durability: Durability::default(),
        }
    }

    /// Returns the table of a resource, which is made on first use.
    pub(crate) fn table(&self, name: &str) -> TableId {
        self.state.lock().table(name, self.history_capacity)
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

    /// Commits one write, or returns why not.
    ///
    /// A removal returns the last state under its new revision.
    pub(crate) fn commit(&self, write: Write<'_>) -> Result<Arc<Stored>, Refused> {
        let mut state = self.state.lock();
        state.check_namespace(&write)?;
        if write
            .terminating
            .is_some_and(|flag| flag.load(Ordering::Relaxed))
        {
            return Err(Refused::KindTerminating);
        }
        let current = state.tables[write.table.0].objects.get(write.key).cloned();
        if current.as_ref().map(|stored| stored.revision()) != write.expected {
            return Err(Refused::Raced);
        }
        let object = match (current, write.draft) {
            (None, None) => return Err(Refused::Raced),
            (Some(last), None) => state.remove(write.table, last),
            (previous, Some(draft)) => {
                let stamp = |revision, event| draft.stamp(revision, event);
                state.put(write.table, previous, stamp)
            }
        };
        drop(state);
        self.wake();
        Ok(object)
    }

    /// Reads a range of a table.
    pub(crate) fn range(&self, table: TableId, range: &Range<'_>) -> Result<Page, Expired> {
        let state = self.state.lock();
        let table = &state.tables[table.0];
        let mut revision = range.at.unwrap_or(state.revision);
        if range.or_oldest {
            revision = revision.max(table.history.floor());
        }
        if !table.history.reaches(revision) {
            return Err(Expired);
        }
        let then = match range.at {
            Some(_) => table.history.undone_to(revision),
            None => BTreeMap::new(),
        };
        let bounds = bounds(range);
        let now = table.objects.range::<str, _>(bounds_of(&bounds));
        if then.is_empty() {
            return Ok(page_of(now.map(|(_, stored)| stored), range, revision));
        }
        let gone = then.range::<str, _>(bounds_of(&bounds));
        let unchanged = now.filter(|(key, _)| !then.contains_key(*key));
        let mut objects: Vec<&Arc<Stored>> = unchanged.map(|(_, stored)| stored).collect();
        objects.extend(gone.filter_map(|(_, stored)| stored.as_ref()));
        objects.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        Ok(page_of(objects.into_iter(), range, revision))
    }

    /// Returns whether a watch may begin at a revision.
    pub(crate) fn reaches(&self, table: TableId, revision: u64) -> bool {
        self.state.lock().tables[table.0].history.reaches(revision)
    }

    /// Returns up to `limit` events after a revision, and how far they are complete.
    ///
    /// The second is the revision up to which nothing is missing if there are fewer. Who has read up to the given
    /// revision misses nothing, even if it has expired.
    pub(crate) fn events(
        &self,
        table: TableId,
        after: u64,
        limit: usize,
    ) -> Result<(Vec<Arc<Event>>, u64), Expired> {
        let state = self.state.lock();
        let history = &state.tables[table.0].history;
        if !history.continues(after) {
            return Err(Expired);
        }
        let visible = state.visible();
        let mut events = history.after(after, limit);
        events.truncate(events.partition_point(|event| event.revision <= visible));
        Ok((events, visible.max(after)))
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
        state.note_compaction();
        drop(state);
        self.wake();
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
            self.committed.notified().await;
            let signals: Vec<watch::Sender<Signal>> = {
                let mut state = self.state.lock();
                let changed = std::mem::take(&mut state.unannounced);
                changed
                    .iter()
                    .map(|table| state.tables[table.0].signal.clone())
                    .collect()
            };
            for signal in signals {
                signal.send_modify(|signal| signal.announced += 1);
            }
            self.commits.send_modify(|commits| *commits += 1);
        }
    }
}

/// Takes the objects up to the limit, and counts the others.
fn page_of<'a>(
    mut objects: impl Iterator<Item = &'a Arc<Stored>>,
    range: &Range<'_>,
    revision: u64,
) -> Page {
    let limit = range.limit.unwrap_or(usize::MAX);
    let page = objects.by_ref().take(limit).map(Arc::clone).collect();
    Page {
        objects: page,
        revision,
        remaining: if range.uncounted { 0 } else { objects.count() },
    }
}

/// The texts between which the keys of a range lie; the end is exclusive.
fn bounds(range: &Range<'_>) -> (String, Option<String>) {
    let (mut start, end) = match range.namespace {
        // "0" is the character behind "/".
        Some(namespace) => (format!("{namespace}/"), Some(format!("{namespace}0"))),
        None => (String::new(), None),
    };
    if let Some(after) = range.start.filter(|after| **after > *start) {
        start = after.to_owned();
    }
    (start, end)
}

fn bounds_of(bounds: &(String, Option<String>)) -> (Bound<&str>, Bound<&str>) {
    let start = bounds.0.as_str();
    // A start behind the end, which only a forged token has, must not panic.
    let end = bounds.1.as_deref().map(|end| end.max(start));
    (
        Bound::Included(start),
        end.map_or(Bound::Unbounded, Bound::Excluded),
    )
}
