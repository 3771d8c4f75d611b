//! One membership in a ring, from the creation of a lease to its end.
//!
//! [`Term::run`] is a loop: act on what was observed, renew the lease if it is time, wait for the next event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::Api;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use super::config::Sharding;
use super::lease::{OwnLease, Renewal};
use super::members::Members;
use super::observer::{Observation, Observer};
use super::shards::Shards;
use super::share::Share;
use crate::config::JITTER;
use crate::leadership::Leadership;
use crate::record::Record;
use crate::request::Refusals;

/// How many observations may wait to be processed.
const QUEUED: usize = 64;

/// The parts that all terms of a member use.
#[derive(Debug)]
pub(super) struct Membership {
    /// Sends the requests.
    pub(super) api: Api<Object>,
    /// The configuration of the ring.
    pub(super) config: Sharding,
    /// The membership, as other tasks see it.
    pub(super) leadership: Leadership,
    /// The share, as other tasks see it.
    pub(super) shards: Shards,
}

/// A process as a member of a ring, or about to become one.
pub(super) struct Term<'a> {
    /// The member.
    member: &'a Membership,
    /// The lease of this term.
    lease: OwnLease<'a>,
    /// The other members, as observed.
    members: Members,
    /// The share with the members in `counted`.
    share: Share,
    /// The other members that `share` takes into account.
    counted: BTreeSet<Arc<str>>,
    /// The members to which their keys have been handed over.
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
    /// The earliest time to take another lease away, after a failed attempt.
    take_away_at: Instant,
    /// Leases without a holder, and when to delete them.
    released: BTreeMap<String, (Object, Instant)>,
}

/// An event that a term waits for.
enum Event {
    /// An observation; `None` if the observer has ended.
    Observation(Option<Observation>),
    /// No call for a lost key is running.
    Drained,
    /// A timer has expired.
    Timer,
}

impl<'a> Term<'a> {
    /// Begins a term with a new lease name; sends no request.
    pub(super) fn new(member: &'a Membership) -> Self {
        let (config, now) = (&member.config.lease, Instant::now());
        // Random, so that no two terms of any process use the same lease.
        let name: Arc<str> = format!("{}-{:08x}", config.name, fastrand::u32(..)).into();
        let leadership = &member.leadership;
        let identity = Arc::clone(&leadership.status().identity);
        Self {
            lease: OwnLease::new(
                &member.api,
                config,
                Arc::clone(&name),
                leadership.namespace(),
                identity,
            ),
            member,
            members: Members::new(name),
            share: Share::none(),
            counted: BTreeSet::new(),
            acked: BTreeSet::new(),
            drain: None,
            revoked: None,
            has_listed: false,
            has_joined: false,
            sent: now,
            renew_at: now,
            take_away_at: now,
            released: BTreeMap::new(),
        }
    }

    /// Returns whether this process has handled keys in this term.
    pub(super) fn has_joined(&self) -> bool {
        self.has_joined
    }

    /// Watches the ring without joining it; never resolves.
    pub(super) async fn watch_only(&mut self) {
        let (_observer, mut observations) = self.observe();
        while let Some(observation) = observations.recv().await {
            self.apply(observation);
            self.count();
        }
        std::future::pending().await
    }

    /// Joins the ring and stays in it; returns the reason for which it ended.
    pub(super) async fn run(&mut self) -> String {
        loop {
            match self.lease_renewed().await {
                Renewal::Held { .. } => break,
                Renewal::Lost(reason) => return reason,
                Renewal::Failed => self.pause().await,
            }
        }
        self.has_listed = false;
        // Observations from before the lease existed are worthless: they do not show who joined at the same time.
        self.members = Members::new(Arc::clone(&self.lease.name));
        // The list begins after the lease was created. So of two members that join at the same time, at least one sees
        // the other.
        let (_observer, mut observations) = self.observe();
        loop {
            // Before the renewal, so that new acknowledgements are written with it.
            self.settle();
            if Instant::now() >= self.renew_at
                && let Err(reason) = self.renew().await
            {
                return reason;
            }
            match self.next(&mut observations).await {
                Event::Observation(Some(observation)) => self.apply(observation),
                Event::Observation(None) => {
                    return "the leases of the ring cannot be watched".to_owned();
                }
                Event::Drained => self.drained(),
                Event::Timer => self.handle_timers().await,
            }
        }
    }

    /// Releases the lease; all calls must have ended.
    pub(super) async fn release(&mut self) {
        self.lease.release().await;
    }

    /// Starts to list and watch the leases; dropping the returned task ends it.
    fn observe(&self) -> (JoinSet<()>, mpsc::Receiver<Observation>) {
        let config = &self.member.config.lease;
        let observer = Observer {
            api: self.member.api.clone(),
            ring: config.name.clone(),
            timeout: config.renew_deadline,
            pause: config.retry_period,
            refusals: Refusals::default(),
        };
        let (sender, observations) = mpsc::channel(QUEUED);
        let mut task = JoinSet::new();
        task.spawn(observer.run(sender));
        (task, observations)
    }

    /// Waits for the next event.
    async fn next(&self, observations: &mut mpsc::Receiver<Observation>) -> Event {
        // While writes of dropped calls may still arrive, the end of the calls does not count as drained.
        let is_draining = self.drain.is_some() && self.waits_until() <= Some(Instant::now());
        tokio::select! {
            biased;
            // Timers come first: many observations must not delay a renewal.
            () = time::sleep_until(self.next_timer()) => Event::Timer,
            observation = observations.recv() => Event::Observation(observation),
            () = self.member.shards.gate().drained(), if is_draining => Event::Drained,
        }
    }

    /// Returns when there is something to do if no event comes.
    fn next_timer(&self) -> Instant {
        let config = &self.member.config;
        let ends = self
            .members
            .next_end()
            // After a failed attempt the expired lease would otherwise end every wait immediately.
            .map(|end| end.max(self.take_away_at));
        let waits_until = self.waits_until().filter(|until| *until > Instant::now());
        let drain = (self.drain).map(|since| waits_until.unwrap_or(since + config.drain));
        let released = self.released.values().map(|(_, due)| *due).min();
        let timers = [ends, drain, released];
        timers
            .into_iter()
            .flatten()
            .fold(self.renew_at, Instant::min)
    }

    /// Does whatever is due now.
    async fn handle_timers(&mut self) {
        let now = Instant::now();
        if let Some(since) = self.drain {
            self.handle_drain(since, now);
        }
        // Before the next `settle`, which counts the members.
        self.members.forget_missing(now);
        if now >= self.take_away_at
            && let Some(expired) = self.members.expired(now).cloned()
        {
            self.take_away(&expired).await;
        }
        // One request per call, so that the renewal is never behind more than one.
        let mut due = self.released.iter().filter(|(_, (_, due))| *due <= now);
        if let Some(name) = due.next().map(|(name, _)| name.clone())
            && let Some((lease, _)) = self.released.remove(&name)
        {
            let timeout = self.member.config.lease.renew_deadline / 4;
            // A failure is ignored: another member may have deleted it, and nothing depends on the deletion.
            let _ = time::timeout(timeout, self.lease.clear_away(&lease)).await;
        }
    }

    /// Returns until when writes of dropped calls may arrive.
    ///
    /// `None` if no calls were dropped.
    fn waits_until(&self) -> Option<Instant> {
        self.revoked
            .map(|revoked| revoked + self.member.config.margin())
    }

    /// Ends a hand-over whose calls have ended, or drops the calls after the timeout.
    fn handle_drain(&mut self, since: Instant, now: Instant) {
        let config = &self.member.config;
        if self.waits_until() > Some(now) {
            return;
        }
        // Checked before the timeout, which may be zero or may expire together with the last call.
        if self.member.shards.gate().is_drained() {
            return self.drained();
        }
        if since + config.drain <= now {
            let ring = &config.lease.name;
            tracing::warn!(%ring, "calls take longer than the drain timeout: they are dropped, and their keys move");
            self.member.shards.gate().revoke();
            self.revoked = Some(now);
        }
    }

    /// Takes an expired lease from its holder.
    async fn take_away(&mut self, expired: &Object) {
        let name = expired.metadata.name.as_deref().unwrap_or_default();
        // Bounded, because this member's own renewals wait meanwhile.
        let timeout = self.member.config.lease.renew_deadline / 4;
        let taken = time::timeout(timeout, self.lease.take_away(expired)).await;
        match taken.ok().flatten() {
            Some(released) => {
                tracing::info!(
                    lease = name,
                    "took the lease of a member that has not renewed it"
                );
                self.apply(Observation::Seen(Box::new(released)));
            }
            None => self.take_away_at = Instant::now() + self.member.config.lease.retry_period,
        }
    }

    /// Processes an observation.
    fn apply(&mut self, observation: Observation) {
        let now = Instant::now();
        match observation {
            Observation::All(leases) => {
                leases
                    .iter()
                    .for_each(|lease| self.note_released(lease, now));
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

    /// Schedules the deletion of a released lease.
    ///
    /// It is deleted only after all members have seen that it was released: to a member that did not, a deleted lease
    /// looks like a missing one and counts for its duration.
    fn note_released(&mut self, lease: &Object, now: Instant) {
        let name = lease.metadata.name.clone().unwrap_or_default();
        if Record::of(lease).holder.is_empty() {
            let jitter = JITTER * fastrand::f64();
            let due = now + self.member.config.lease.duration.mul_f64(1.0 + jitter);
            // The time is random, so that the members do not all send the same deletion.
            self.released.entry(name).or_insert((lease.clone(), due));
        }
    }

    /// Acts on what was observed: counts the members, joins, or begins a hand-over.
    fn settle(&mut self) {
        self.count();
        let now = Instant::now();
        // A member may have waited long for its acknowledgements. Joining with an expired lease would admit calls that
        // others may run too.
        let is_held = self.deadline() > now;
        if !self.has_joined && self.has_listed && is_held && self.members.all_acked() {
            self.join();
        }
        let has_to_ack = self.members.others().any(|name| !self.acked.contains(name));
        let drains = has_to_ack && self.members.may_ack();
        // A hand-over that is under way keeps its beginning, and so its timeout, if further members join.
        self.drain = drains.then(|| self.drain.unwrap_or_else(Instant::now));
    }

    /// Updates the share if the members have changed.
    fn count(&mut self) {
        let others: BTreeSet<Arc<str>> = self.members.others().cloned().collect();
        if !self.has_listed || others == self.counted && self.share != Share::none() {
            return;
        }
        self.share = Share::of(&self.lease.name, others.iter().map(|name| &**name));
        // Members that have left need no acknowledgement. The annotation would grow with every restart.
        self.acked.retain(|name| others.contains(name));
        self.counted = others;
        self.member.shards.keep(&self.share);
        if !self.has_joined {
            // No call is running, so nothing of an earlier share is needed.
            self.member.shards.drop_lost();
        }
        if self.has_joined {
            // The gate closes for lost keys before the acknowledgement is written: from then on the new member may
            // handle them.
            self.member.shards.gate().set(&self.share);
            let (ring, members) = (&self.member.config.lease.name, self.share.members());
            tracing::info!(%ring, members, "the ring has changed");
        }
    }

    /// Begins to handle the keys of the share.
    fn join(&mut self) {
        self.has_joined = true;
        let leadership = &self.member.leadership;
        leadership.sign_as(format!("{}/{}", leadership.namespace(), self.lease.name));
        self.member.shards.gate().set(&self.share);
        self.note_renewal();
        let (ring, members) = (&self.member.config.lease.name, self.share.members());
        let lease = &self.lease.name;
        tracing::info!(%ring, %lease, members, "joined the ring");
    }

    /// Acknowledges the new members, since no call for their keys is running.
    fn drained(&mut self) {
        self.drain = None;
        self.acked = self.members.others().cloned().collect();
        self.member.shards.drop_lost();
        // The acknowledgement is written with the next renewal, which happens now because the new member waits for it.
        self.renew_at = Instant::now();
    }

    /// Returns when this process stops being a member unless it renews its lease.
    fn deadline(&self) -> Instant {
        self.sent + self.member.config.lease.renew_deadline
    }

    /// Renews the lease, with as many attempts as fit before the deadline.
    async fn renew(&mut self) -> Result<(), String> {
        let config = &self.member.config.lease;
        let (deadline, due, began) = (self.deadline(), self.renew_at, Instant::now());
        let tries = async {
            loop {
                match self.lease_renewed().await {
                    Renewal::Held { .. } => return Ok(()),
                    Renewal::Lost(reason) => return Err(reason),
                    Renewal::Failed => time::sleep(self.member.config.lease.retry_period).await,
                }
            }
        };
        let renewed = time::timeout_at(deadline, tries).await;
        renewed.unwrap_or_else(|_| Err(config.not_renewed(due, began, deadline)))
    }

    /// Makes one attempt to renew the lease.
    async fn lease_renewed(&mut self) -> Renewal {
        let renewal = self.lease.renew(&self.acked).await;
        if let Renewal::Held { sent } = renewal {
            self.sent = sent;
            self.renew_at = Instant::now() + self.member.config.lease.retry_period;
            if self.deadline() <= Instant::now() {
                // The process was suspended, or the answer was late. Another process may have taken the lease by now.
                return Renewal::Failed;
            }
            if self.has_joined {
                self.note_renewal();
            }
        }
        renewal
    }

    /// Publishes a renewal.
    fn note_renewal(&self) {
        let (leadership, slow) = (&self.member.leadership, self.lease.slow);
        // A ring has no epochs: terms differ in the names of their leases.
        leadership.renewed(0, self.sent, self.deadline(), slow);
    }

    /// Waits between two attempts to create the lease, for a random time.
    pub(super) async fn pause(&self) {
        let period = self.member.config.lease.retry_period;
        time::sleep(period.mul_f64(1.0 + JITTER * fastrand::f64())).await;
    }
}
