//! The keys that handlers fail for or have given up.
//!
//! Calls record both. Whether a record still holds is asked of the queue, the cache and the ring when it is read: a key
//! may leave the controller without a call.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::CachedObject;
use lariat_core::{ObjectKey, Uid};
use lariat_queue::{LaneId, QueuedKey, QueuedLane};
use tokio::time::{self, Instant};

use super::core::ControllerCore;
use crate::lane::Lane;
use crate::snapshot::{FailingKey, GivenUpKey};

impl ControllerCore {
    /// Returns the keys that a handler fails for, in no order.
    pub(super) fn failing(&self, lane: &Lane) -> Vec<ObjectKey> {
        if !self.is_working() {
            return Vec::new();
        }
        self.sweep_failures(lane)
    }

    /// Forgets keys that a handler no longer fails for; returns the others.
    fn sweep_failures(&self, lane: &Lane) -> Vec<ObjectKey> {
        lane.failures().sweep(|key| self.still_fails(lane, key))
    }

    /// Waits until lines about failures are due.
    pub(super) async fn failures_due(&self) {
        let lanes = self.lanes().list();
        let due = lanes.iter().filter_map(|lane| lane.failures().due()).min();
        match due {
            Some(due) => time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// Logs the failures that are due, or at the end all that are not logged.
    pub(super) fn log_failures(&self, is_end: bool) {
        for lane in self.lanes().list().iter() {
            self.sweep_failures(lane);
            lane.failures().log_due(self.gvk(), lane.name(), is_end);
        }
    }

    /// Returns the keys that a handler has given up, with the ends of their last calls.
    ///
    /// None while the controller does not run, such as on a standby replica. They count again after the next start,
    /// which does not call handlers for objects that have not changed.
    pub(super) fn given_up(&self, lane: &Lane) -> Vec<(ObjectKey, Instant)> {
        if !self.is_working() {
            return Vec::new();
        }
        // A call that was delayed before the last failure still comes, and then the key is judged again.
        lane.given_up()
            .sweep(|key, uid| self.is_own(key, Some(uid)) && !self.is_due_for(key, lane.id()))
    }

    /// Returns whether a handler still fails for a key: it is to be called again for it, by this process.
    fn still_fails(&self, lane: &Lane, key: &ObjectKey) -> bool {
        let is_own = self.object(key).is_none() || self.is_own(key, None);
        is_own && self.is_queued(key, lane.id())
    }

    /// Returns whether a key is being processed, or queued for a lane.
    fn is_queued(&self, key: &ObjectKey, lane: LaneId) -> bool {
        let queued = self.queue().queued(key);
        queued.is_some_and(|queued| queued.processing_for.is_some() || is_for(&queued, lane))
    }

    /// Returns whether a key is due for a lane, now or later.
    fn is_due_for(&self, key: &ObjectKey, lane: LaneId) -> bool {
        let queued = self.queue().queued(key);
        // A key that waits for the lane may wait long, as for the end of a pause.
        queued.is_some_and(|queued| {
            let waits = |each: &QueuedLane| each.lane == lane && each.waits_for.is_some();
            is_for(&queued, lane) && !queued.lanes.iter().any(waits)
        })
    }

    /// Returns a cached object.
    fn object(&self, key: &ObjectKey) -> Option<Arc<CachedObject>> {
        self.opened()?.informer().store().get(key)
    }

    /// Returns whether an object exists, with this uid if one is given, and belongs to this process.
    fn is_own(&self, key: &ObjectKey, uid: Option<&Uid>) -> bool {
        self.object(key).is_some_and(|object| {
            uid.is_none_or(|uid| uid == object.uid()) && self.own_keys().hold(&object)
        })
    }

    /// Returns the keys that handlers fail for, most failures in a row first.
    pub(crate) fn failing_keys(&self, limit: usize) -> Vec<FailingKey> {
        let lanes = self.lanes().list();
        let mut failing = Vec::new();
        for (at, lane) in lanes.iter().enumerate() {
            for key in self.failing(lane) {
                let failures = self.queue().failures(&key, lane.id());
                failing.push((Reverse(failures), at, key));
            }
        }
        failing.sort_unstable();
        failing.truncate(limit);
        let failing = failing.into_iter();
        failing
            .map(|(Reverse(failures), at, key)| FailingKey {
                handler: lanes[at].name().clone(),
                failures,
                error: self.history().last_error(&key, lanes[at].name()),
                retry_in: self.retry_in(&key, lanes[at].id()),
                key,
            })
            .collect()
    }

    fn retry_in(&self, key: &ObjectKey, lane: LaneId) -> Option<Duration> {
        let lanes = self.queue().queued(key)?.lanes;
        let own = lanes.iter().find(|each| each.lane == lane)?;
        Some(own.due_in).filter(|due_in| !due_in.is_zero())
    }

    /// Returns the keys that handlers have given up, those of the newest calls first.
    pub(crate) fn given_up_keys(&self, limit: usize) -> Vec<GivenUpKey> {
        let lanes = self.lanes().list();
        let mut given_up = Vec::new();
        for lane in lanes.iter() {
            let keys = self.given_up(lane).into_iter();
            given_up.extend(keys.map(|(key, ended)| (ended, lane, key)));
        }
        given_up.sort_by(|(a, _, key), (b, _, other)| b.cmp(a).then_with(|| key.cmp(other)));
        given_up.truncate(limit);
        let given_up = given_up.into_iter();
        given_up
            .map(|(ended, lane, key)| self.given_up_key(lane, key, ended))
            .collect()
    }

    /// Returns the handlers that have given up a key.
    pub(crate) fn given_up_of(&self, key: &ObjectKey) -> Vec<GivenUpKey> {
        let lanes = self.lanes().list();
        let found = lanes.iter().filter_map(|lane| {
            let mut keys = self.given_up(lane).into_iter();
            let (key, ended) = keys.find(|(given_up, _)| given_up == key)?;
            Some(self.given_up_key(lane, key, ended))
        });
        found.collect()
    }

    fn given_up_key(&self, lane: &Lane, key: ObjectKey, ended: Instant) -> GivenUpKey {
        GivenUpKey {
            handler: lane.name().clone(),
            error: self.history().last_error(&key, lane.name()),
            ago: ended.elapsed(),
            key,
        }
    }
}

/// Returns whether a queued key is due for a lane, now or later.
fn is_for(queued: &QueuedKey<ObjectKey>, lane: LaneId) -> bool {
    let mut lanes = queued.lanes.iter().map(|each| each.lane);
    lanes.any(|each| each == lane || each == LaneId::WHOLE)
}
