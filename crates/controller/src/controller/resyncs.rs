//! The resyncs of handlers that have a period of their own.

use std::sync::Arc;

use lariat_core::Cause;
use lariat_queue::LaneId;
use tokio::time::Instant;

use super::core::ControllerCore;
use super::opened::Opened;
use crate::lane::{Lane, LaneList};

/// The next resync of each handler that has a resync period.
#[derive(Debug, Default)]
pub(super) struct Resyncs(Vec<(LaneId, Instant)>);

impl Resyncs {
    /// Takes over the present handlers; returns when the next resync is due.
    pub(super) fn follow(&mut self, lanes: &LaneList) -> Option<Instant> {
        self.0
            .retain(|(id, _)| lanes.iter().any(|lane| lane.id() == *id));
        for lane in lanes.iter() {
            if let Some(period) = lane.resync_period()
                && !self.0.iter().any(|(id, _)| *id == lane.id())
                // A period that overflows the clock means never.
                && let Some(first) = Instant::now().checked_add(period)
            {
                self.0.push((lane.id(), first));
            }
        }
        self.0.iter().map(|(_, at)| *at).min()
    }

    /// Enqueues all objects for the handlers whose resync is due.
    pub(super) fn replay(&mut self, core: &ControllerCore, opened: &Opened) {
        let (lanes, now) = (core.lanes().list(), Instant::now());
        for (id, at) in self.0.iter_mut().filter(|(_, at)| *at <= now) {
            let lane = lanes.iter().find(|lane: &&Arc<Lane>| lane.id() == *id);
            let period = lane.and_then(|lane| Some((lane, lane.resync_period()?)));
            if let Some((lane, period)) = period {
                core.replay(opened, lane, &Cause::Resync, false);
                *at = now + period;
            }
        }
    }
}
