//! Snapshots of a controller for people: running calls and queued keys.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use lariat_core::ObjectKey;
use lariat_queue::{self as queue, LaneId};

use super::core::ControllerCore;
use crate::lane::{Lane, LaneList, WaitingKey};
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

    /// Returns the first keys of the queue, then keys that wait outside it.
    pub(crate) fn queued(&self, limit: usize) -> QueuedKeys {
        let lanes = self.lanes().list();
        let snapshot = self.queue().snapshot(limit);
        let in_queue = snapshot.keys.into_iter();
        let mut keys: Vec<QueuedKey> = in_queue.map(|seen| named(seen, &lanes)).collect();
        // A key may be in the queue for some handlers and wait outside it for others. Such a key is one entry.
        let places = keys.iter().enumerate();
        let mut places: HashMap<ObjectKey, usize> =
            places.map(|(at, each)| (each.key.clone(), at)).collect();
        let mut total = snapshot.total;
        for lane in lanes.iter() {
            total += lane.waiting();
            for waiting in lane.first_waiting(limit) {
                match places.get(&waiting.key) {
                    Some(at) => keys[*at].add(lane, &waiting),
                    None if keys.len() == limit => {}
                    None => {
                        places.insert(waiting.key.clone(), keys.len());
                        keys.push(QueuedKey::outside(lane, &waiting));
                    }
                }
            }
        }
        QueuedKeys { keys, total }
    }

    /// Returns the state of a key; none if it is not queued and does not wait.
    pub(crate) fn queued_key(&self, key: &ObjectKey) -> Option<QueuedKey> {
        let lanes = self.lanes().list();
        let mut found = self.queue().queued(key).map(|seen| named(seen, &lanes));
        for lane in lanes.iter() {
            let Some(waiting) = lane.waits(key) else {
                continue;
            };
            match &mut found {
                Some(found) => found.add(lane, &waiting),
                none => *none = Some(QueuedKey::outside(lane, &waiting)),
            }
        }
        found
    }
}

impl QueuedKey {
    /// Creates a key that is not in the queue.
    fn outside(lane: &Lane, waiting: &WaitingKey) -> Self {
        let mut key = Self {
            key: waiting.key.clone(),
            state: None,
            priority: waiting.priority,
            due_for: Duration::ZERO,
            processing_for: None,
            lanes: Vec::new(),
        };
        key.add(lane, waiting);
        key
    }

    /// Adds a handler that the key waits for.
    fn add(&mut self, lane: &Lane, waiting: &WaitingKey) {
        self.priority = self.priority.max(waiting.priority);
        // A waiting key is due, so it goes behind the due lanes and before the delayed ones.
        let due = self.lanes.iter().filter(|each| each.due_in.is_zero());
        let at = due.count();
        let queued = QueuedLane {
            handler: Some(lane.name().clone()),
            due_in: Duration::ZERO,
            failures: waiting.failures,
            waits_for: Some(waiting.waits_for),
        };
        self.lanes.insert(at, queued);
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
            waits_for: None,
        })
    });
    QueuedKey {
        lanes: named.collect(),
        state: Some(seen.state),
        priority: seen.priority,
        due_for: seen.due_for,
        processing_for: seen.processing_for,
        key: seen.key,
    }
}
