//! One membership, from the creation of a lease to its end.

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
use super::observer::{Observer, Sight};
use super::shards::Shards;
use super::share::Share;
use crate::config::JITTER;
use crate::leadership::Leadership;
use crate::record::Record;
use crate::request::Refusals;

/// How many observations may wait to be processed.
const SIGHTS: usize = 64;

/// What a member of a ring works with.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) api: Api<Object>,
    pub(super) config: Sharding,
    pub(super) leadership: Leadership,
    pub(super) shards: Shards,
}

/// A process as a member of a ring, or about to become one.
pub(super) struct Term<'a> {
    member: &'a Membership,
    lease: OwnLease<'a>,
    members: Members,
    share: Share,
    /// The other members of the current share.
    counted: BTreeSet<Arc<str>>,
    /// The members to which their keys were handed over.
    acked: BTreeSet<Arc<str>>,
    /// Since when a hand-over waits for running calls.
    drain: Option<Instant>,
    /// When calls that took too long were last dropped.
    ///
    /// Their requests may be under way for a while.
    revoked: Option<Instant>,
    /// Whether the other members are known.
    has_listed: bool,
    has_joined: bool,
    /// When the last answered renewal was sent.
    sent: Instant,
    renew_at: Instant,
    /// The earliest time to take another lease away, after a failed attempt.
    take_away_at: Instant,
    /// Leases without a holder, and when they are deleted.
    released: BTreeMap<String, (Object, Instant)>,
}

/// An event that a member waits for.
enum Event {
    Sight(Option<Sight>),
    Drained,
    Timer,
}

impl<'a> Term<'a> {
    pub(super) fn new(member: &'a Membership) -> Self {
        let (config, now) = (&member.config.lease, Instant::now());
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
                &member.config.division,
            ),
            member,
            members: Members::new(name, &member.config.division),
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

    pub(super) fn has_joined(&self) -> bool {
        self.has_joined
    }

    /// Observes the ring without joining it; never ends.
    pub(super) async fn look_on(&mut self) {
        let (_observer, mut sights) = self.observe();
        while let Some(sight) = sights.recv().await {
            self.take_in(sight);
            self.count();
        }
        std::future::pending().await
    }

    /// Joins the ring and stays in it; returns why the membership has ended.
    pub(super) async fn run(&mut self) -> String {
        loop {
            match self.lease_renewed().await {
                Renewal::Held { .. } => break,
                Renewal::Lost(reason) => return reason,
                Renewal::Failed => self.pause().await,
            }
        }
        self.has_listed = false;
        // What was observed before the lease existed does not show who joined at the same time.
        self.members = Members::new(Arc::clone(&self.lease.name), &self.member.config.division);
        // After the lease was created, so that of two members that join at the same time one sees the other.
        let (_observer, mut sights) = self.observe();
        loop {
            self.settle();
            if Instant::now() >= self.renew_at
                && let Err(reason) = self.renew().await
            {
                return reason;
            }
            match self.next(&mut sights).await {
                Event::Sight(Some(sight)) => self.take_in(sight),
                Event::Sight(None) => return "the leases of the ring cannot be watched".to_owned(),
                Event::Drained => self.drained(),
                Event::Timer => self.attend().await,
            }
        }
    }

    /// Releases the lease. No call may be running any more.
    pub(super) async fn release(&mut self) {
        self.lease.release().await;
    }

    fn observe(&self) -> (JoinSet<()>, mpsc::Receiver<Sight>) {
        let config = &self.member.config.lease;
        let observer = Observer {
            api: self.member.api.clone(),
            ring: config.name.clone(),
            patience: config.renew_deadline,
            pause: config.retry_period,
            refusals: Refusals::default(),
        };
        let (sender, sights) = mpsc::channel(SIGHTS);
        let mut task = JoinSet::new();
        task.spawn(observer.run(sender));
        (task, sights)
    }

    async fn next(&self, sights: &mut mpsc::Receiver<Sight>) -> Event {
        let is_draining = self.drain.is_some() && self.waits_until() <= Some(Instant::now());
        tokio::select! {
            biased;
            () = time::sleep_until(self.next_timer()) => Event::Timer,
            sight = sights.recv() => Event::Sight(sight),
            () = self.member.shards.gate().drained(), if is_draining => Event::Drained,
        }
    }

    /// Returns when something is due if no event comes.
    fn next_timer(&self) -> Instant {
        let config = &self.member.config;
        let ends = self
            .members
            .next_end()
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

    /// Does what is due.
    async fn attend(&mut self) {
        let now = Instant::now();
        if let Some(since) = self.drain {
            self.attend_drain(since, now);
        }
        self.members.forget_missing(now);
        if now >= self.take_away_at
            && let Some(expired) = self.members.expired(now).cloned()
        {
            self.take_away(&expired).await;
        }
        let mut due = self.released.iter().filter(|(_, (_, due))| *due <= now);
        if let Some(name) = due.next().map(|(name, _)| name.clone())
            && let Some((lease, _)) = self.released.remove(&name)
        {
            let patience = self.member.config.lease.renew_deadline / 4;
            // Another member may delete it.
            let _ = time::timeout(patience, self.lease.clear_away(&lease)).await;
        }
    }

    /// Returns until when writes of dropped calls may be under way.
    ///
    /// `None` if none were dropped.
    fn waits_until(&self) -> Option<Instant> {
        self.revoked
            .map(|revoked| revoked + self.member.config.margin())
    }

    fn attend_drain(&mut self, since: Instant, now: Instant) {
        let config = &self.member.config;
        if self.waits_until() > Some(now) {
            return;
        }
        // First, because the timeout may be zero, or as long as the call took.
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

    async fn take_away(&mut self, expired: &Object) {
        let name = expired.metadata.name.as_deref().unwrap_or_default();
        // The own renewals take precedence.
        let patience = self.member.config.lease.renew_deadline / 4;
        let taken = time::timeout(patience, self.lease.take_away(expired)).await;
        match taken.ok().flatten() {
            Some(released) => {
                tracing::info!(
                    lease = name,
                    "took the lease of a member that has not renewed it"
                );
                self.take_in(Sight::Seen(Box::new(released)));
            }
            None => self.take_away_at = Instant::now() + self.member.config.lease.retry_period,
        }
    }

    fn take_in(&mut self, sight: Sight) {
        let now = Instant::now();
        match sight {
            Sight::All(leases) => {
                leases
                    .iter()
                    .for_each(|lease| self.note_released(lease, now));
                self.members.listed(leases, now);
                self.has_listed = true;
            }
            Sight::Seen(lease) => {
                self.note_released(&lease, now);
                self.members.seen(*lease, now);
            }
            Sight::Deleted(name) => {
                self.released.remove(&name);
                self.members.missing(&name, now);
            }
        }
    }

    /// Schedules the deletion of a released lease.
    ///
    /// By then all members have seen its release.
    fn note_released(&mut self, lease: &Object, now: Instant) {
        let name = lease.metadata.name.clone().unwrap_or_default();
        if Record::of(lease).holder.is_empty() {
            let jitter = JITTER * fastrand::f64();
            let due = now + self.member.config.lease.duration.mul_f64(1.0 + jitter);
            self.released.entry(name).or_insert((lease.clone(), due));
        }
    }

    /// Acts on what was observed.
    fn settle(&mut self) {
        self.count();
        let now = Instant::now();
        let is_held = self.deadline() > now;
        if !self.has_joined && self.has_listed && is_held && self.members.all_acked() {
            self.join();
        }
        let has_to_ack = self.members.others().any(|name| !self.acked.contains(name));
        let drains = has_to_ack && self.members.may_ack();
        self.drain = drains.then(|| self.drain.unwrap_or_else(Instant::now));
    }

    /// Updates the members and the share.
    fn count(&mut self) {
        let others: BTreeSet<Arc<str>> = self.members.others().cloned().collect();
        if !self.has_listed || others == self.counted && self.share != Share::none() {
            return;
        }
        let is_first = self.share == Share::none();
        let grows = is_first || self.counted.iter().any(|name| !others.contains(name));
        let shrinks = !is_first && others.iter().any(|name| !self.counted.contains(name));
        self.share = Share::of(&self.lease.name, others.iter().map(|name| &**name));
        self.acked.retain(|name| others.contains(name));
        self.counted = others;
        self.member.shards.keep(&self.share, grows, shrinks);
        if self.has_joined {
            // The gate closes for lost keys before the acknowledgement is written.
            self.member.shards.gate().set(&self.share);
            let (ring, members) = (&self.member.config.lease.name, self.share.members());
            tracing::info!(%ring, members, "the ring has changed");
        }
    }

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

    /// Notes that no call for lost keys is running, and acknowledges that in the lease.
    fn drained(&mut self) {
        self.drain = None;
        self.acked = self.members.others().cloned().collect();
        self.member.shards.let_go();
        self.renew_at = Instant::now();
    }

    fn deadline(&self) -> Instant {
        self.sent + self.member.config.lease.renew_deadline
    }

    /// Renews the lease, with as many attempts as there is time for.
    async fn renew(&mut self) -> Result<(), String> {
        let (deadline, after) = (self.deadline(), self.member.config.lease.renew_deadline);
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
        renewed.unwrap_or_else(|_| Err(format!("its lease was not renewed within {after:?}")))
    }

    /// Makes one attempt to renew the lease.
    async fn lease_renewed(&mut self) -> Renewal {
        let renewal = self.lease.renew(&self.acked).await;
        if let Renewal::Held { sent } = renewal {
            self.sent = sent;
            self.renew_at = Instant::now() + self.member.config.lease.retry_period;
            if self.deadline() <= Instant::now() {
                // The process was paused, or the answer came late: another process may have taken over.
                return Renewal::Failed;
            }
            if self.has_joined {
                self.note_renewal();
            }
        }
        renewal
    }

    fn note_renewal(&self) {
        let (leadership, slow) = (&self.member.leadership, self.lease.slow);
        leadership.renewed(0, self.sent, self.deadline(), slow);
    }

    /// Waits between two attempts to create the lease; the time is random.
    pub(super) async fn pause(&self) {
        let period = self.member.config.lease.retry_period;
        time::sleep(period.mul_f64(1.0 + JITTER * fastrand::f64())).await;
    }
}
