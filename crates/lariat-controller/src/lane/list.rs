//! The list of lanes.

use std::ops::Deref;
use std::sync::Arc;

use lariat_cache::Change;
use lariat_core::Gvk;
use lariat_queue::{Lanes as Due, Priority};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::Lane;
use crate::error::RegisterError;
use crate::flight::ControllerFlight;
use crate::status::HandlerStatus;
use crate::totals::Totals;

/// The lanes of a kind. A run takes the present list and keeps it, so registering and deregistering
/// neither wait for runs nor disturb them.
#[derive(Default)]
pub(crate) struct Lanes {
    list: RwLock<LaneList>,
    /// Notified when the list has changed.
    changed: Notify,
    /// What was counted of lanes that are not in the list any more.
    gone: Arc<Mutex<Totals>>,
    flight: Option<ControllerFlight>,
}

/// The lanes there are at some moment, in the order of their registration.
#[derive(Clone, Default)]
pub(crate) struct LaneList {
    lanes: Arc<[Arc<Lane>]>,
    /// Whether all of them take every change alike.
    alike: bool,
}

impl LaneList {
    fn new(lanes: Arc<[Arc<Lane>]>) -> Self {
        let usual = |lane: &Arc<Lane>| lane.takes_all() && lane.options.priority.is_none();
        let alike = lanes.iter().all(usual);
        Self { lanes, alike }
    }

    /// Returns which lanes are due for a change, and how urgently.
    pub(crate) fn due(&self, change: &Change) -> (Due, Priority) {
        let usual = priority(change);
        if self.alike {
            return if self.lanes.is_empty() {
                (Due::none(), usual)
            } else {
                (Due::ALL, usual)
            };
        }
        let wanting = self.lanes.iter().filter(|lane| lane.wants(change));
        let mut urgency = None;
        let due: Due = wanting
            .inspect(|lane| urgency = urgency.max(Some(lane.priority(usual))))
            .map(|lane| lane.id())
            .collect();
        (due, urgency.unwrap_or(usual))
    }

    /// Returns whether there is none that can be called.
    pub(crate) fn is_over(&self) -> bool {
        self.lanes.iter().all(|lane| lane.is_over())
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Lane>> {
        self.lanes.iter().find(|lane| &**lane.name() == name)
    }

    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.lanes.iter().map(|lane| &**lane.name()).collect();
        if names.is_empty() {
            "(it has none)".to_owned()
        } else {
            names.join(", ")
        }
    }
}

/// What was there when the cache was filled can wait for what happens now, and so can what is published again.
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
    pub(crate) fn new(flight: Option<ControllerFlight>) -> Self {
        Self {
            flight,
            ..Self::default()
        }
    }

    pub(crate) fn list(&self) -> LaneList {
        self.list.read().clone()
    }

    /// Notifies the task that runs the lanes that there is something new.
    pub(crate) fn notify(&self) {
        self.changed.notify_waiters();
    }

    /// Waits for the next change of the list.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Waits until there is a handler that can be called.
    pub(crate) async fn any(&self) {
        loop {
            let changed = self.changed.notified();
            if !self.list.read().is_over() {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn check(&self, gvk: &Gvk, name: &str) -> Result<(), RegisterError> {
        // One that is over has lost its name already.
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
        if let Some(flight) = &self.flight {
            flight.registered(lane.id(), lane.name());
        }
        drop(list);
        self.changed.notify_waiters();
    }

    /// Takes a lane out of the list; its last call may be under way.
    pub(crate) fn remove(&self, lane: &Lane) {
        drop(self.take_out(|each| each.id == lane.id));
    }

    /// Takes out those whose time is over, and returns them: handlers that are dropped do as they like.
    pub(crate) fn sweep(&self) -> Vec<Arc<Lane>> {
        if self.list().iter().any(|lane| lane.is_over()) {
            self.take_out(Lane::is_over)
        } else {
            Vec::new()
        }
    }

    /// Takes every lane out, without waiting.
    pub(crate) fn clear(&self) {
        drop(self.take_out(|_| true));
    }

    fn take_out(&self, chosen: impl Fn(&Lane) -> bool) -> Vec<Arc<Lane>> {
        let mut list = self.list.write();
        // Asked once: the time of a lane can be over at any moment.
        let (out, rest): (Vec<_>, Vec<_>) = list.iter().cloned().partition(|lane| chosen(lane));
        for lane in &out {
            lane.close();
            lane.leave(&self.gone);
            if let Some(flight) = &self.flight {
                flight.deregistered(lane.id(), lane.name());
            }
        }
        let before = std::mem::replace(&mut *list, LaneList::new(rest.into()));
        drop(list);
        drop(before);
        self.changed.notify_waiters();
        out.iter().for_each(|lane| lane.end());
        out
    }

    /// Returns what was counted of each lane, and of all that are gone.
    pub(crate) fn status(&self) -> (Vec<HandlerStatus>, HandlerStatus) {
        // Under the lock, so that a lane that goes is in one of them.
        let list = self.list.read();
        let gone = self.gone.lock().clone();
        let present = list.iter().map(|lane| lane.status()).collect();
        (present, HandlerStatus::new("".into(), gone))
    }
}
