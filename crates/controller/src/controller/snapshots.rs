//! Snapshots of a controller for people: running calls and queued keys.

use std::cmp::Reverse;

use lariat_core::ObjectKey;
use lariat_queue::{self as queue, LaneId};

use super::core::ControllerCore;
use crate::lane::LaneList;
use crate::snapshot::{InProgress, QueuedKey, QueuedKeys, QueuedLane};

impl ControllerCore {
    /// Returns the calls that are running, longest first.
    pub(crate) fn in_progress(&self) -> Vec<InProgress> {
        let running = self.activity().running().into_iter();
        let mut calls: Vec<InProgress> = running
            .map(|doing| InProgress {
                lasts: doing.lasts(),
                key: doing.key,
                handler: doing.handler,
            })
            .collect();
        calls.sort_by_key(|call| Reverse(call.lasts));
        calls
    }

    /// Returns the first keys of the queue.
    pub(crate) fn queued(&self, limit: usize) -> QueuedKeys {
        let lanes = self.lanes().list();
        let snapshot = self.queue().snapshot(limit);
        let keys = snapshot.keys.into_iter();
        QueuedKeys {
            keys: keys.map(|seen| named(seen, &lanes)).collect(),
            total: snapshot.total,
        }
    }

    /// Returns the state of a key; none if it is not queued.
    pub(crate) fn queued_key(&self, key: &ObjectKey) -> Option<QueuedKey> {
        let seen = self.queue().queued(key)?;
        Some(named(seen, &self.lanes().list()))
    }
}

/// Returns a queued key with the names of its handlers.
///
/// Handlers that were deregistered are left out.
fn named(seen: queue::QueuedKey<ObjectKey>, lanes: &LaneList) -> QueuedKey {
    let most = seen.failures.iter().map(|(_, count)| *count).max();
    let named = seen.lanes.iter().filter_map(|queued| {
        let whole = queued.lane == LaneId::WHOLE;
        let lane = lanes.iter().find(|lane| lane.id() == queued.lane);
        if lane.is_none() && !whole {
            return None;
        }
        Some(QueuedLane {
            handler: lane.map(|lane| lane.name().clone()),
            due_in: queued.due_in,
            failures: if whole {
                most.unwrap_or(0)
            } else {
                seen.failures_of(queued.lane)
            },
            waits_for: queued.waits_for,
        })
    });
    QueuedKey {
        lanes: named.collect(),
        state: seen.state,
        priority: seen.priority,
        due_for: seen.due_for,
        processing_for: seen.processing_for,
        key: seen.key,
    }
}
