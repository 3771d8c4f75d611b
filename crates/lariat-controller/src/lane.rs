//! Lanes: the named handlers of a kind, in the order of their registration.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use lariat_core::Gvk;
use lariat_queue::LaneId;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::error::RegisterError;
use crate::handler::AnyHandler;
use crate::status::HandlerStatus;

/// One registered handler.
pub(crate) struct Lane {
    id: LaneId,
    name: Arc<str>,
    handler: Box<dyn AnyHandler>,
    gate: Gate,
    totals: Totals,
}

/// Lets calls in until it is closed, and knows how many are inside.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    left: Notify,
}

#[derive(Default)]
struct GateState {
    closed: bool,
    inside: usize,
}

/// A call that is under way.
pub(crate) struct Inside<'a>(&'a Gate);

/// Totals since the handler was registered.
#[derive(Debug, Default)]
struct Totals {
    runs: AtomicU64,
    failures: AtomicU64,
    retries: AtomicU64,
    panics: AtomicU64,
    timeouts: AtomicU64,
    busy_micros: AtomicU64,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    Failed,
    Panicked,
    TimedOut,
}

impl Lane {
    pub(crate) fn id(&self) -> LaneId {
        self.id
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn handler(&self) -> &dyn AnyHandler {
        &*self.handler
    }

    /// Begins a call; `None` once the handler is deregistered.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        let mut state = self.gate.state.lock();
        if state.closed {
            return None;
        }
        state.inside += 1;
        Some(Inside(&self.gate))
    }

    /// Lets no further call begin.
    fn close(&self) {
        self.gate.state.lock().closed = true;
    }

    /// Waits until no call is under way; to be closed before.
    async fn empty(&self) {
        loop {
            let left = self.gate.left.notified();
            if self.gate.state.lock().inside == 0 {
                return;
            }
            left.await;
        }
    }

    pub(crate) fn count(&self, ended: Ended, attempt: u32, took: Duration) {
        let totals = &self.totals;
        totals.runs.fetch_add(1, Ordering::Relaxed);
        totals
            .retries
            .fetch_add(u64::from(attempt > 1), Ordering::Relaxed);
        totals
            .failures
            .fetch_add(u64::from(ended != Ended::Well), Ordering::Relaxed);
        totals
            .panics
            .fetch_add(u64::from(ended == Ended::Panicked), Ordering::Relaxed);
        totals
            .timeouts
            .fetch_add(u64::from(ended == Ended::TimedOut), Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        totals.busy_micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn status(&self) -> HandlerStatus {
        let total = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        HandlerStatus {
            name: Arc::clone(&self.name),
            runs: total(&self.totals.runs),
            retries: total(&self.totals.retries),
            failures: total(&self.totals.failures),
            panics: total(&self.totals.panics),
            timeouts: total(&self.totals.timeouts),
            busy: Duration::from_micros(total(&self.totals.busy_micros)),
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.inside -= 1;
        if state.inside == 0 {
            self.0.left.notify_waiters();
        }
    }
}

/// The lanes of a kind. A run takes the present list and keeps it, so registering and deregistering
/// neither wait for runs nor disturb them.
#[derive(Default)]
pub(crate) struct Lanes {
    list: RwLock<Arc<[Arc<Lane>]>>,
    next_id: AtomicU32,
}

impl Lanes {
    pub(crate) fn list(&self) -> Arc<[Arc<Lane>]> {
        Arc::clone(&self.list.read())
    }

    pub(crate) fn add(
        &self,
        gvk: &Gvk,
        name: &str,
        handler: Box<dyn AnyHandler>,
    ) -> Result<Arc<Lane>, RegisterError> {
        if name.is_empty() {
            return Err(RegisterError::EmptyName { gvk: gvk.clone() });
        }
        let mut list = self.list.write();
        if list.iter().any(|lane| &*lane.name == name) {
            return Err(RegisterError::NameTaken {
                gvk: gvk.clone(),
                name: name.to_owned(),
            });
        }
        let lane = Arc::new(Lane {
            id: LaneId::new(self.next_id.fetch_add(1, Ordering::Relaxed)),
            name: name.into(),
            handler,
            gate: Gate::default(),
            totals: Totals::default(),
        });
        *list = list.iter().chain([&lane]).cloned().collect();
        Ok(lane)
    }

    /// Takes a lane out of the list and waits until its last call has ended.
    pub(crate) async fn remove(&self, lane: &Lane) {
        self.take_out(|each| each.id == lane.id);
        lane.empty().await;
    }

    /// Takes every lane out, without waiting.
    pub(crate) fn clear(&self) {
        self.take_out(|_| true);
    }

    fn take_out(&self, chosen: impl Fn(&Lane) -> bool) {
        let mut list = self.list.write();
        for lane in list.iter().filter(|lane| chosen(lane)) {
            lane.close();
        }
        *list = list.iter().filter(|lane| !chosen(lane)).cloned().collect();
    }

    pub(crate) fn status(&self) -> Vec<HandlerStatus> {
        self.list().iter().map(|lane| lane.status()).collect()
    }
}
