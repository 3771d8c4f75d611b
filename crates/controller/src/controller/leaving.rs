//! The calls of deregistered handlers that have not ended.
//!
//! Such a call keeps its key and its worker. The worker does not count any more: another one takes its place, until the
//! call ends. So a call that hangs costs the handlers that are registered its own key, and no worker.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::Gvk;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::activity::{Activity, Doing};
use crate::lane::{InFlight, Lane};

/// How long a call goes on after its handler was deregistered before that is logged; then twice as long, and so on.
const LONG: Duration = Duration::from_secs(60);

/// The deregistered handlers of a kind that still have running calls.
#[derive(Default)]
pub(super) struct Leaving(Mutex<Vec<Leaver>>);

/// A deregistered handler with running calls.
struct Leaver {
    /// Not the lane, so that the handler is dropped with its last call.
    in_flight: Arc<InFlight>,
    name: Arc<str>,
    since: Instant,
    /// After how long its calls are logged next.
    next: Duration,
}

impl Leaving {
    /// Adds deregistered handlers that have running calls.
    pub(super) fn add(&self, lanes: &[Arc<Lane>]) {
        let mut leavers = self.0.lock();
        let running = lanes.iter().filter(|lane| lane.in_flight().running() > 0);
        leavers.extend(running.map(Leaver::new));
    }

    /// Returns how many calls of deregistered handlers are running.
    pub(super) fn calls(&self) -> usize {
        self.0.lock().iter().map(Leaver::calls).sum()
    }

    /// Forgets handlers without running calls; returns when running calls are logged next.
    pub(super) fn next_log(&self) -> Option<Instant> {
        let mut leavers = self.0.lock();
        leavers.retain(|leaver| leaver.calls() > 0);
        // A time that overflows the clock means never.
        let times = leavers
            .iter()
            .map(|leaver| leaver.since.checked_add(leaver.next));
        times.flatten().min()
    }

    /// Logs the calls that have been running for long.
    pub(super) fn log_long(&self, kind: &Gvk, activity: &Activity) {
        let now = Instant::now();
        let mut leavers = self.0.lock();
        let mut names = Vec::new();
        for leaver in leavers.iter_mut() {
            if now - leaver.since >= leaver.next {
                leaver.next = leaver.next.saturating_mul(2);
                names.push((Arc::clone(&leaver.name), now - leaver.since));
            }
        }
        drop(leavers);
        for (handler, since) in names {
            let running = activity.running().into_iter();
            let is_its = |call: &Doing| {
                call.handler
                    .as_ref()
                    .is_some_and(|name| Arc::ptr_eq(name, &handler))
            };
            for call in running.filter(is_its) {
                let (key, lasts) = (&call.key, call.lasts());
                tracing::warn!(
                    %kind, %handler, %key, ?lasts, ?since,
                    "call of a deregistered handler has not ended; its key waits for it"
                );
            }
        }
    }
}

impl Leaver {
    fn new(lane: &Arc<Lane>) -> Self {
        Self {
            in_flight: Arc::clone(lane.in_flight()),
            name: Arc::clone(lane.name()),
            since: Instant::now(),
            next: LONG,
        }
    }

    fn calls(&self) -> usize {
        self.in_flight.running()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handler_whose_calls_have_ended_is_forgotten() {
        let leaver = Leaver {
            in_flight: Arc::default(),
            name: "old".into(),
            since: Instant::now(),
            next: LONG,
        };
        let leaving = Leaving(Mutex::new(vec![leaver]));
        assert_eq!(leaving.next_log(), None);
        assert!(leaving.0.lock().is_empty());
    }
}
