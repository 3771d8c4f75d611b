//! The lanes of a kind, as an immutable list that is replaced as a whole.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{CachedObject, Change};
use lariat_core::Gvk;
use lariat_queue::{LaneId, Lanes as Due, Priority};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::Lane;
use crate::error::{NO_HANDLERS, RegisterError};
use crate::status::HandlerStatus;
use crate::totals::Totals;

/// The lanes of a kind.
///
/// A run works on a snapshot of the list. So registering and deregistering a handler neither waits for runs, nor
/// changes the order of calls in them.
#[derive(Default)]
pub(crate) struct Lanes {
    list: RwLock<LaneList>,
    /// Notified when the list or anything else the supervisor awaits has changed.
    changed: Notify,
    /// The totals of removed lanes.
    gone: Arc<Mutex<Totals>>,
}

/// A snapshot of the lanes, in the order of registration.
#[derive(Clone, Default)]
pub(crate) struct LaneList {
    lanes: Arc<[Arc<Lane>]>,
    /// Whether all lanes take every change at the usual priority. Then no lane is checked for a change.
    alike: bool,
    /// Whether some lane is debounced.
    debounces: bool,
}

impl LaneList {
    fn new(lanes: Arc<[Arc<Lane>]>) -> Self {
        let usual = |lane: &Arc<Lane>| lane.takes_all() && lane.options.priority.is_none();
        Self {
            alike: lanes.iter().all(usual),
            debounces: lanes.iter().any(|lane| lane.debounce().is_some()),
            lanes,
        }
    }

    /// Returns the lanes that are due for a change, and the priority.
    pub(crate) fn due(&self, change: &Change) -> (Due, Priority) {
        let usual = priority(change);
        if self.alike {
            return (self.all(), usual);
        }
        let wanting = self.lanes.iter().filter(|lane| lane.wants(change));
        let mut urgency = None;
        let due: Due = wanting
            .inspect(|lane| urgency = urgency.max(Some(lane.priority(usual))))
            .map(|lane| lane.id())
            .collect();
        (due, urgency.unwrap_or(usual))
    }

    /// Returns all lanes.
    pub(crate) fn all(&self) -> Due {
        if self.lanes.is_empty() {
            Due::none()
        } else {
            Due::ALL
        }
    }

    /// Returns the lanes that want additions, or updates that change nothing, of an object in this state.
    pub(crate) fn may_be_due(&self, object: &Arc<CachedObject>) -> Due {
        if self.alike {
            return self.all();
        }
        let wanting = self.lanes.iter().filter(|lane| lane.may_want(object));
        wanting.map(|lane| lane.id()).collect()
    }

    /// Returns the priority with which a change of a related object is enqueued for some lanes.
    pub(crate) fn priority(&self, due: &Due, change: &Change) -> Priority {
        let usual = priority(change);
        let named = self.lanes.iter().filter(|lane| due.contains(lane.id()));
        let highest = named.map(|lane| lane.priority(usual)).max();
        highest.unwrap_or(usual)
    }

    /// Returns the due lanes without that of a handler.
    pub(crate) fn without(&self, due: &Due, handler: &Arc<str>) -> Due {
        let others = self
            .lanes
            .iter()
            .filter(|lane| !Arc::ptr_eq(lane.name(), handler));
        let due = others.filter(|lane| due.contains(lane.id()));
        due.map(|lane| lane.id()).collect()
    }

    /// Removes debounced lanes from those that are due for a change.
    ///
    /// Returns them with their periods.
    pub(crate) fn take_debounced(&self, due: &mut Due, change: &Change) -> Vec<(Duration, LaneId)> {
        let is_urgent = match change {
            Change::Added { initial, .. } => *initial,
            Change::Updated { .. } => false,
            _ => true,
        };
        // `ALL` in `due` also covers lanes that are registered later. It is resolved to single lanes only if one is
        // debounced.
        if !self.debounces || is_urgent {
            return Vec::new();
        }
        let of = |lane: &Arc<Lane>| Some((lane.debounce()?, lane.id()));
        let named = self.lanes.iter().filter(|lane| due.contains(lane.id()));
        let (waiting, rest): (Vec<_>, Vec<_>) = named.partition(|lane| lane.debounce().is_some());
        *due = rest.into_iter().map(|lane| lane.id()).collect();
        waiting.into_iter().filter_map(of).collect()
    }

    /// Returns whether no lane can be called: the list is empty, or all tokens are cancelled.
    pub(crate) fn is_over(&self) -> bool {
        self.lanes.iter().all(|lane| lane.is_over())
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Lane>> {
        self.lanes.iter().find(|lane| &**lane.name() == name)
    }

    /// Returns the names as text, for errors.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.lanes.iter().map(|lane| &**lane.name()).collect();
        if names.is_empty() {
            NO_HANDLERS.to_owned()
        } else {
            names.join(", ")
        }
    }
}

/// Returns the usual priority of a change: low for initial lists and resyncs.
fn priority(change: &Change) -> Priority {
    match change {
        Change::Added { initial: true, .. } | Change::Resynced { .. } => Priority::Low,
        _ => Priority::Normal,
    }
}

impl Deref for LaneList {
    type Target = [Arc<Lane>];

    fn deref(&self) -> &[Arc<Lane>] {
        &self.lanes
    }
}

impl Lanes {
    pub(crate) fn list(&self) -> LaneList {
        self.list.read().clone()
    }

    /// Wakes the tasks that wait for a change of the list, like the supervisor.
    pub(crate) fn notify(&self) {
        self.changed.notify_waiters();
    }

    /// Returns a future that resolves at the next change of the list.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Waits until some lane can be called.
    pub(crate) async fn any(&self) {
        loop {
            // Created before the list is read, so that a change in between is not missed.
            let changed = self.changed.notified();
            if !self.list.read().is_over() {
                return;
            }
            changed.await;
        }
    }

    /// Checks that a name is free.
    pub(crate) fn check(&self, gvk: &Gvk, name: &str) -> Result<(), RegisterError> {
        // A lane whose token is cancelled is about to be removed, so its name is free.
        match self.list.read().named(name) {
            Some(lane) if !lane.is_over() => Err(RegisterError::NameTaken {
                gvk: gvk.clone(),
                name: name.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn add(&self, lane: &Arc<Lane>) {
        let mut list = self.list.write();
        *list = LaneList::new(list.iter().chain([lane]).cloned().collect());
        drop(list);
        self.changed.notify_waiters();
    }

    /// Removes a lane, whose last call may still be running; returns whether it was there.
    pub(crate) fn remove(&self, lane: &Lane) -> bool {
        !self.take_out(|each| each.id == lane.id).is_empty()
    }

    /// Removes the lanes whose token is cancelled.
    ///
    /// They are returned, so that the caller drops them without locks: dropping a handler runs user code.
    pub(crate) fn sweep(&self) -> Vec<Arc<Lane>> {
        if self.list().iter().any(|lane| lane.is_over()) {
            self.take_out(Lane::is_over)
        } else {
            Vec::new()
        }
    }

    /// Removes all lanes, without waiting for calls.
    pub(crate) fn clear(&self) {
        drop(self.take_out(|_| true));
    }

    /// Removes and returns the chosen lanes, and calls their end functions.
    fn take_out(&self, chosen: impl Fn(&Lane) -> bool) -> Vec<Arc<Lane>> {
        let mut list = self.list.write();
        // `chosen` is called once per lane: a token that is cancelled between two calls would lose its lane.
        let (out, rest): (Vec<_>, Vec<_>) = list.iter().cloned().partition(|lane| chosen(lane));
        for lane in &out {
            // From now on `enter` refuses calls, also in runs that work on an older snapshot of the list.
            lane.close();
            // Under the lock of the list, so that `status` counts the lane exactly once: as present, or as removed.
            lane.leave(&self.gone);
        }
        // The old list may hold the last reference to a handler, so it is dropped after unlocking.
        let before = std::mem::replace(&mut *list, LaneList::new(rest.into()));
        drop(list);
        drop(before);
        self.changed.notify_waiters();
        out.iter().for_each(|lane| lane.end());
        out
    }

    /// Returns the counters of each lane, and of all removed ones together.
    pub(crate) fn status(&self) -> (Vec<HandlerStatus>, HandlerStatus) {
        // Both are read under the lock of the list, so that a lane that is being removed counts in exactly one of them.
        let list = self.list.read();
        let gone = self.gone.lock().clone();
        let present = list.iter().map(|lane| lane.status()).collect();
        (present, HandlerStatus::new("".into(), gone))
    }
}
