//! One membership in a ring as a state machine, without I/O and without a clock.
//!
//! The [task](super::term) passes what it observes, and asks for the [`next`](MemberState::next) step until that is to
//! wait. Each step is carried out before the next one is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease as Object;
use tokio::time::Instant;

use super::config::Sharding;
use super::members::Members;
use super::share::Share;
use crate::config::JITTER;
use crate::record::Record;

/// An observation of the leases of a ring.
#[derive(Debug, Clone)]
pub(super) enum Observation {
    /// All leases, from a list.
    All(Vec<Object>),
    /// A lease was created or changed.
    Seen(Box<Object>),
    /// The lease with this name was deleted.
    Deleted(String),
}

/// A step of a member.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// The members have changed: cache the objects of the share, and admit its keys if this process has joined.
    Count(Share),
    /// Begin to handle the keys of the share.
    Join(Share),
    /// Forget the objects of lost keys, since no call for them is running.
    DropLost,
    /// End the running calls for lost keys.
    Revoke,
    /// Make one attempt to renew the lease, which ends at the deadline.
    Renew,
    /// Take an expired lease from its holder.
    TakeAway(Box<Object>),
    /// Delete a lease without a holder.
    ClearAway(Box<Object>),
    /// The membership has ended, because the lease was not renewed in time.
    Lost(Unrenewed),
    /// Wait for an observation, until a time, or until no call for a lost key is running.
    Wait {
        /// When to ask again.
        until: Instant,
        /// Whether the end of the calls ends the wait.
        for_calls: bool,
    },
}

/// The times of a renewal that has not succeeded before its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unrenewed {
    /// When it was due.
    pub(super) due: Instant,
    /// When it began.
    pub(super) began: Instant,
    /// The deadline.
    pub(super) deadline: Instant,
}

/// The times of a ring.
#[derive(Debug, Clone, Copy)]
struct Times {
    duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
    /// How long a hand-over waits for calls.
    drain: Duration,
    /// How long a write of a dropped call may take to arrive.
    margin: Duration,
}

/// The state of one membership.
#[derive(Debug)]
pub(super) struct MemberState {
    /// The name of the own lease.
    name: Arc<str>,
    times: Times,
    /// The other members, as observed.
    members: Members,
    /// The share with the members in `counted`.
    share: Share,
    /// The other members that `share` takes into account.
    counted: BTreeSet<Arc<str>>,
    /// The members to which their keys have been handed over; always among `counted`.
    acked: BTreeSet<Arc<str>>,
    /// When the current hand-over began to wait for running calls; `None` without one.
    drain: Option<Instant>,
    /// When calls that took too long were last dropped.
    ///
    /// Requests that they sent may still arrive for a while.
    revoked: Option<Instant>,
    /// Whether the other members are known.
    has_listed: bool,
    /// Whether this process handles keys.
    has_joined: bool,
    /// When the last answered renewal was sent.
    sent: Instant,
    /// When to renew the lease next.
    renew_at: Instant,
    /// When the renewal that has not succeeded yet was due, and when it began.
    unrenewed: Option<(Instant, Instant)>,
    /// The earliest time to take another lease away, after a failed attempt.
    take_away_at: Instant,
    /// Leases without a holder, and when to delete them.
    released: BTreeMap<String, (Object, Instant)>,
}

impl MemberState {
    /// Creates the state of a process that has no lease yet, and has observed nothing.
    pub(super) fn new(name: Arc<str>, config: &Sharding, now: Instant) -> Self {
        let lease = &config.lease;
        Self {
            members: Members::new(Arc::clone(&name)),
            name,
            times: Times {
                duration: lease.duration,
                renew_deadline: lease.renew_deadline,
                retry_period: lease.retry_period,
                drain: config.drain,
                margin: config.margin(),
            },
            share: Share::none(),
            counted: BTreeSet::new(),
            acked: BTreeSet::new(),
            drain: None,
            revoked: None,
            has_listed: false,
            has_joined: false,
            sent: now,
            renew_at: now,
            unrenewed: None,
            take_away_at: now,
            released: BTreeMap::new(),
        }
    }

    /// Returns whether this process has handled keys in this term.
    pub(super) fn has_joined(&self) -> bool {
        self.has_joined
    }

    /// Returns the members to acknowledge with the next renewal.
    pub(super) fn acked(&self) -> &BTreeSet<Arc<str>> {
        &self.acked
    }

    /// Returns when the last answered renewal was sent.
    pub(super) fn sent(&self) -> Instant {
        self.sent
    }

    /// Returns when this process stops being a member unless it renews its lease.
    pub(super) fn deadline(&self) -> Instant {
        self.sent + self.times.renew_deadline
    }

    /// Begins the membership: the lease was created by a request that was sent at `sent`.
    ///
    /// Observations from before are forgotten: they do not show who joined at the same time.
    pub(super) fn begin(&mut self, sent: Instant, now: Instant) {
        self.members = Members::new(Arc::clone(&self.name));
        self.has_listed = false;
        self.share = Share::none();
        self.counted.clear();
        self.renewed(sent, now);
    }

    /// Processes a renewal that was answered now.
    pub(super) fn renewed(&mut self, sent: Instant, now: Instant) {
        self.sent = sent;
        self.renew_at = now + self.times.retry_period;
        self.unrenewed = None;
    }

    /// Processes a renewal that has failed, or had no answer.
    pub(super) fn not_renewed(&mut self, now: Instant) {
        self.renew_at = now + self.times.retry_period;
    }

    /// Processes the failure to take a lease away.
    pub(super) fn not_taken(&mut self, now: Instant) {
        self.take_away_at = now + self.times.retry_period;
    }

    /// Processes an observation.
    pub(super) fn observed(&mut self, observation: Observation, now: Instant) {
        match observation {
            Observation::All(leases) => {
                let noted = leases.iter();
                noted.for_each(|lease| self.note_released(lease, now));
                self.members.listed(leases, now);
                self.has_listed = true;
            }
            Observation::Seen(lease) => {
                self.note_released(&lease, now);
                self.members.seen(*lease, now);
            }
            Observation::Deleted(name) => {
                self.released.remove(&name);
                self.members.missing(&name, now);
            }
        }
    }

    /// Returns the next step; `is_drained` tells whether no call for a lost key is running.
    pub(super) fn next(&mut self, now: Instant, is_drained: bool) -> Step {
        // First: after a suspension the process may not act on anything, because others may have its keys.
        if self.deadline() <= now {
            return Step::Lost(self.unrenewed(now));
        }
        self.members.forget_missing(now);
        // The share is counted, and the gate closed for lost keys, before a hand-over is acknowledged: from then on the
        // new member may handle them.
        if let Some(step) = self.count() {
            return step;
        }
        if !self.has_joined && self.has_listed && self.members.all_acked() {
            self.has_joined = true;
            return Step::Join(self.share.clone());
        }
        self.update_drain(now);
        if let Some(step) = self.hand_over(now, is_drained) {
            return step;
        }
        // Before the requests about other leases, each of which delays it by one at most.
        if self.renew_at <= now {
            self.unrenewed.get_or_insert((self.renew_at, now));
            return Step::Renew;
        }
        if let Some(expired) = self.expired(now) {
            return Step::TakeAway(Box::new(expired));
        }
        if let Some(released) = self.take_released(now) {
            return Step::ClearAway(Box::new(released));
        }
        Step::Wait {
            until: self.next_timer(now),
            for_calls: self.drain.is_some() && self.waits_until().is_none_or(|until| until <= now),
        }
    }

    /// Updates the share if the members have changed.
    pub(super) fn count(&mut self) -> Option<Step> {
        let others: BTreeSet<Arc<str>> = self.members.others().cloned().collect();
        if !self.has_listed || others == self.counted && self.share != Share::none() {
            return None;
        }
        self.share = Share::of(&self.name, others.iter().map(|name| &**name));
        // Members that have left need no acknowledgement. The annotation would grow with every restart.
        self.acked.retain(|name| others.contains(name));
        self.counted = others;
        Some(Step::Count(self.share.clone()))
    }

    /// Begins or ends the wait for running calls.
    fn update_drain(&mut self, now: Instant) {
        let has_to_ack = self.counted.iter().any(|name| !self.acked.contains(name));
        let drains = has_to_ack && self.members.may_ack();
        // A hand-over that is under way keeps its beginning, and so its timeout, if further members join.
        self.drain = drains.then(|| self.drain.unwrap_or(now));
    }

    /// Acknowledges the new members if no call for their keys is running, and drops calls that take too long.
    fn hand_over(&mut self, now: Instant, is_drained: bool) -> Option<Step> {
        let since = self.drain?;
        // While writes of dropped calls may still arrive, the end of the calls does not count.
        if self.waits_until().is_some_and(|until| until > now) {
            return None;
        }
        // Checked before the timeout, which may be zero or may expire together with the last call.
        if is_drained {
            self.drain = None;
            self.acked.clone_from(&self.counted);
            // The acknowledgement is written with the next renewal, which happens now because the new member waits for
            // it.
            self.renew_at = now;
            return Some(Step::DropLost);
        }
        (since + self.times.drain <= now).then(|| {
            self.revoked = Some(now);
            Step::Revoke
        })
    }

    /// Returns whether writes of dropped calls may still arrive.
    pub(super) fn awaits_writes(&self, now: Instant) -> bool {
        self.waits_until().is_some_and(|until| until > now)
    }

    /// Returns until when writes of dropped calls may arrive.
    ///
    /// `None` if no calls were dropped.
    fn waits_until(&self) -> Option<Instant> {
        self.revoked.map(|revoked| revoked + self.times.margin)
    }

    /// Returns another member's lease that has expired, unless an attempt to take it has failed just now.
    fn expired(&self, now: Instant) -> Option<Object> {
        let expired = (self.take_away_at <= now).then(|| self.members.expired(now));
        expired.flatten().cloned()
    }

    /// Schedules the deletion of a released lease.
    ///
    /// It is deleted only after all members have seen that it was released: to a member that did not, a deleted lease
    /// looks like a missing one and counts for its duration.
    fn note_released(&mut self, lease: &Object, now: Instant) {
        let name = lease.metadata.name.clone().unwrap_or_default();
        if Record::of(lease).holder.is_empty() {
            // The time is random, so that the members do not all send the same deletion.
            let jitter = 1.0 + JITTER * fastrand::f64();
            let due = now + self.times.duration.mul_f64(jitter);
            self.released.entry(name).or_insert((lease.clone(), due));
        }
    }

    /// Takes out a released lease that is to be deleted now.
    fn take_released(&mut self, now: Instant) -> Option<Object> {
        let mut due = self.released.iter().filter(|(_, (_, due))| *due <= now);
        let name = due.next()?.0.clone();
        self.released.remove(&name).map(|(lease, _)| lease)
    }

    /// Returns when there is something to do if no event comes.
    fn next_timer(&self, now: Instant) -> Instant {
        // After a failed attempt the expired lease would otherwise end every wait immediately.
        let ends = self
            .members
            .next_end()
            .map(|end| end.max(self.take_away_at));
        let waits_until = self.waits_until().filter(|until| *until > now);
        let drain = (self.drain).map(|since| waits_until.unwrap_or(since + self.times.drain));
        let released = self.released.values().map(|(_, due)| *due).min();
        let timers = [Some(self.renew_at), ends, drain, released];
        let timers = timers.into_iter().flatten();
        timers.fold(self.deadline(), Instant::min)
    }

    /// Returns the times of the renewal whose deadline has passed.
    fn unrenewed(&self, now: Instant) -> Unrenewed {
        let (due, began) = self.unrenewed.unwrap_or((self.renew_at, now));
        let deadline = self.deadline();
        Unrenewed {
            due,
            began,
            deadline,
        }
    }
}
