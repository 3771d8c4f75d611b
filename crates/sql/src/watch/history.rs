//! The history: the last changes of a kind, for its watches.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use lariat_cache::CachedObject;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::row::Row;
use crate::schema::Schema;

/// A change of an object, as it was written.
#[derive(Debug)]
pub(crate) struct Event {
    /// The version of the kind after the change.
    pub(crate) version: u64,
    /// The number of the change.
    pub(crate) change: u64,
    pub(crate) old: Option<ObjectState>,
    pub(crate) new: Option<ObjectState>,
}

impl Event {
    /// Returns the size of its states.
    ///
    /// An old state is often the new state of an earlier event, and counted twice then.
    fn bytes(&self) -> usize {
        let states = [&self.old, &self.new].into_iter().flatten();
        states.map(|state| state.object.bytes()).sum()
    }
}

/// A state of an object, whose row is read on first use.
#[derive(Debug)]
pub(crate) struct ObjectState {
    pub(crate) object: Arc<CachedObject>,
    row: OnceLock<Option<Row>>,
}

impl ObjectState {
    pub(crate) fn new(object: Arc<CachedObject>) -> Self {
        Self {
            object,
            row: OnceLock::new(),
        }
    }

    /// Returns the row; `None` if it cannot be read.
    pub(crate) fn row(&self, schema: &Schema) -> Option<&Row> {
        // Read once for all watches, on the first one that needs it.
        let read = || {
            let json = self.object.json()?;
            Some(Row::of(schema, &self.object, &json).0)
        };
        self.row.get_or_init(read).as_ref()
    }
}

/// The largest size of the states that a history keeps, in bytes.
const BYTES: usize = 32 << 20;

/// The last changes of a kind, up to a limit and up to 32 MiB of states.
///
/// The last change is kept whatever its size, unless the limit is zero.
///
/// A write never waits for watches: a watch that is too slow finds that its next change is no longer kept.
#[derive(Debug)]
pub(crate) struct History {
    /// Distinguishes it from other histories.
    number: u32,
    kept: Mutex<Kept>,
    limit: usize,
    newest: watch::Sender<Newest>,
}

/// The changes that a history keeps.
#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<KeptEvent>,
    /// The sum of the sizes of `events`.
    bytes: usize,
}

#[derive(Debug)]
struct KeptEvent {
    event: Arc<Event>,
    /// The size of its states when it was added; they may be compressed later.
    bytes: usize,
}

/// The end of a history.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Newest {
    /// The number of the last change.
    change: u64,
    /// The reason why no change follows, if the history has ended.
    over: Option<Over>,
}

/// The reason why a history has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// The cache has stopped.
    Stopped,
    /// Another process writes the cache.
    Elsewhere,
}

/// The change that follows another one.
#[derive(Debug)]
pub(crate) enum Next {
    Event(Arc<Event>),
    NotYet,
    /// The history has ended.
    Over(Over),
    /// The change is no longer kept.
    Gone,
}

impl History {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            number: fastrand::u32(..),
            kept: Mutex::default(),
            limit,
            newest: watch::Sender::default(),
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Adds changes that were written, in the order of their numbers.
    pub(crate) fn push(&self, events: impl IntoIterator<Item = Event>) {
        let mut kept = self.kept.lock();
        let mut newest = None;
        for event in events {
            newest = Some(event.change);
            kept.add(event, self.limit);
        }
        // Before watches are woken, which take this lock.
        drop(kept);
        if let Some(newest) = newest {
            self.newest.send_modify(|known| known.change = newest);
        }
    }

    /// Forgets all changes up to one that no event describes.
    ///
    /// Watches that are not beyond it have to list again.
    pub(crate) fn forget(&self, change: u64) {
        let mut kept = self.kept.lock();
        *kept = Kept::default();
        drop(kept);
        self.newest.send_modify(|newest| newest.change = change);
    }

    /// Ends all watches once they have read the changes that are kept.
    pub(crate) fn end(&self, is_elsewhere: bool) {
        let over = if is_elsewhere {
            Over::Elsewhere
        } else {
            Over::Stopped
        };
        self.newest.send_modify(|newest| newest.over = Some(over));
    }

    /// Returns the change that follows one.
    pub(crate) fn after(&self, change: u64) -> Next {
        let kept = &self.kept.lock().events;
        // Under the lock of the events: otherwise a change in between would look like a missing one.
        let newest = *self.newest.borrow();
        if newest.change <= change {
            return newest.over.map_or(Next::NotYet, Next::Over);
        }
        // Numbers have no gaps.
        let first = kept.front().map_or(u64::MAX, |kept| kept.event.change);
        let place = (change + 1)
            .checked_sub(first)
            .and_then(|place| usize::try_from(place).ok());
        match place.and_then(|place| kept.get(place)) {
            Some(kept) => Next::Event(Arc::clone(&kept.event)),
            None => Next::Gone,
        }
    }

    /// Returns a receiver that is notified of changes and of the end.
    pub(crate) fn newest(&self) -> watch::Receiver<Newest> {
        self.newest.subscribe()
    }
}

impl Kept {
    fn add(&mut self, event: Event, limit: usize) {
        let bytes = event.bytes();
        self.bytes += bytes;
        let event = Arc::new(event);
        self.events.push_back(KeptEvent { event, bytes });
        let is_full = |kept: &Self| {
            kept.events.len() > limit || (kept.bytes > BYTES && kept.events.len() > 1)
        };
        while is_full(self) {
            self.bytes -= self.events.pop_front().map_or(0, |kept| kept.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::RawObject;

    use super::*;

    fn event(change: u64) -> Event {
        Event {
            version: 10 * change,
            change,
            old: None,
            new: None,
        }
    }

    #[test]
    fn the_last_changes_are_kept_and_earlier_ones_dropped() {
        let history = History::new(3);
        assert!(matches!(history.after(0), Next::NotYet));
        history.push((1..=5).map(event));
        assert!(matches!(history.after(0), Next::Gone));
        assert!(matches!(history.after(1), Next::Gone));
        for change in 2..5 {
            assert!(
                matches!(history.after(change), Next::Event(event) if event.change == change + 1)
            );
        }
        assert!(matches!(history.after(5), Next::NotYet));
    }

    #[test]
    fn change_without_event_is_not_skipped() {
        let history = History::new(3);
        history.push((1..=2).map(event));
        history.forget(3);
        assert!(matches!(history.after(1), Next::Gone));
        assert!(matches!(history.after(2), Next::Gone));
        assert!(matches!(history.after(3), Next::NotYet));
        history.push([event(4)]);
        assert!(matches!(history.after(2), Next::Gone));
        assert!(matches!(history.after(3), Next::Event(event) if event.change == 4));
    }

    #[test]
    fn history_is_bounded_in_bytes() {
        let data = "x".repeat(1 << 20);
        let json = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a","uid":"u","resourceVersion":"1"}},"data":{{"x":"{data}"}}}}"#
        );
        let state = || {
            let gvk = lariat_core::Gvk::new("", "v1", "ConfigMap");
            let raw = RawObject::parse(json.as_bytes(), &gvk).unwrap();
            Some(ObjectState::new(Arc::new(CachedObject::new(raw))))
        };
        let history = History::new(1_000);
        history.push((1..=100).map(|change| Event {
            old: state(),
            new: state(),
            ..event(change)
        }));
        let kept = history.kept.lock();
        assert!(kept.bytes <= BYTES);
        assert_eq!(kept.events.len(), BYTES / (2 << 20) - 1);
        let sum: usize = kept.events.iter().map(|kept| kept.bytes).sum();
        assert_eq!(kept.bytes, sum);
    }

    #[test]
    fn a_history_of_none_keeps_nothing() {
        let history = History::new(0);
        history.push([event(1)]);
        assert!(matches!(history.after(0), Next::Gone));
        assert!(matches!(history.after(1), Next::NotYet));
    }
}
