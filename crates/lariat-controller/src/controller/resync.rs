//! Calling handlers that want every object from time to time.

use lariat_core::Cause;
use lariat_queue::LaneId;
use tokio::time::Instant;

use super::core::ControllerCore;
use crate::lane::{Lane, LaneList};

/// When which handler is called for every object there is.
#[derive(Debug, Default)]
pub(super) struct Resyncs(Vec<(LaneId, Instant)>);

impl Resyncs {
    /// Takes in which handlers there are; returns when the next is due.
    pub(super) fn follow(&mut self, lanes: &LaneList) -> Option<Instant> {
        self.0
            .retain(|(id, _)| lanes.iter().any(|lane| lane.id() == *id));
        for lane in lanes.iter() {
            if let Some(period) = lane.resync_period()
                && !self.0.iter().any(|(id, _)| *id == lane.id())
                // What no clock can hold is never.
                && let Some(first) = Instant::now().checked_add(period)
            {
                self.0.push((lane.id(), first));
            }
        }
        self.0.iter().map(|(_, at)| *at).min()
    }

    /// Calls those that are due.
    pub(super) fn replay(&mut self, core: &ControllerCore) {
        let (lanes, now) = (core.lanes().list(), Instant::now());
        for (id, at) in self.0.iter_mut().filter(|(_, at)| *at <= now) {
            let lane = lanes
                .iter()
                .find(|lane: &&std::sync::Arc<Lane>| lane.id() == *id);
            let period = lane.and_then(|lane| Some((lane, lane.resync_period()?)));
            if let Some((lane, period)) = period {
                core.replay(lane, &Cause::Resync, false);
                *at = now + period;
            }
        }
    }
}
