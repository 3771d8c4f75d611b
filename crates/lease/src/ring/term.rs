//! The task of one membership in a ring, from the creation of a lease to its end.
//!
//! [`Term::run`] is a loop: ask the [state](MemberState) for the next step, carry it out, or wait for the next event.

use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::Api;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use super::config::Sharding;
use super::lease::{OwnLease, Renewal};
use super::observer::Observer;
use super::shards::Shards;
use super::share::Share;
use super::state::{MemberState, Observation, Step};
use crate::config::JITTER;
use crate::leadership::Leadership;
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
    /// Decides what to do.
    state: MemberState,
}

impl<'a> Term<'a> {
    /// Creates a term with a new lease name; sends no request.
    pub(super) fn new(member: &'a Membership) -> Self {
        let config = &member.config.lease;
        // Random, so that no two terms of any process use the same lease.
        let name: Arc<str> = format!("{}-{:08x}", config.name, fastrand::u32(..)).into();
        let leadership = &member.leadership;
        let identity = Arc::clone(&leadership.status().identity);
        let (api, namespace) = (&member.api, leadership.namespace());
        Self {
            member,
            state: MemberState::new(Arc::clone(&name), &member.config, Instant::now()),
            lease: OwnLease::new(api, config, name, namespace, identity),
        }
    }

    /// Returns whether this process has handled keys in this term.
    pub(super) fn has_joined(&self) -> bool {
        self.state.has_joined()
    }

    /// Watches the ring without joining it; never resolves.
    pub(super) async fn watch_only(&mut self) {
        let (_observer, mut observations) = self.observe();
        while let Some(observation) = observations.recv().await {
            self.state.observed(observation, Instant::now());
            if let Some(Step::Count(share)) = self.state.count() {
                self.count(&share);
            }
        }
        std::future::pending().await
    }

    /// Joins the ring and stays in it; returns the reason for which it ended.
    pub(super) async fn run(&mut self) -> String {
        if let Err(reason) = self.create().await {
            return reason;
        }
        // The list begins after the lease was created. So of two members that join at the same time, at least one sees
        // the other.
        let (_observer, mut observations) = self.observe();
        loop {
            let is_drained = self.member.shards.gate().is_drained();
            match self.state.next(Instant::now(), is_drained) {
                Step::Count(share) => self.count(&share),
                Step::Join(share) => self.join(&share),
                Step::DropLost => self.member.shards.drop_lost(),
                Step::Revoke => self.revoke(),
                Step::Renew => {
                    if let Err(reason) = self.renew().await {
                        return reason;
                    }
                }
                Step::TakeAway(expired) => self.take_away(&expired).await,
                Step::ClearAway(released) => self.clear_away(&released).await,
                Step::Lost(times) => {
                    let config = &self.member.config.lease;
                    return config.not_renewed(times.due, times.began, times.deadline);
                }
                Step::Wait { until, for_calls } => {
                    let observed = self.wait(until, for_calls, &mut observations);
                    if let Err(reason) = observed.await {
                        return reason;
                    }
                }
            }
        }
    }

    /// Returns whether writes of dropped calls may still arrive.
    pub(super) fn awaits_writes(&self) -> bool {
        self.state.awaits_writes(Instant::now())
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

    /// Creates the lease, with as many attempts as it takes.
    async fn create(&mut self) -> Result<(), String> {
        loop {
            let renewal = self.lease.renew(self.state.acked()).await;
            let now = Instant::now();
            match renewal {
                // Otherwise the process was suspended, or the answer was late. Another process may have taken the lease
                // by now.
                Renewal::Held { sent } if now < sent + self.member.config.lease.renew_deadline => {
                    self.state.begin(sent, now);
                    return Ok(());
                }
                Renewal::Held { .. } | Renewal::Failed => self.pause().await,
                Renewal::Lost(reason) => return Err(reason),
            }
        }
    }

    /// Waits for an observation and processes it; returns earlier if it is time for the next step.
    async fn wait(
        &mut self,
        until: Instant,
        for_calls: bool,
        observations: &mut mpsc::Receiver<Observation>,
    ) -> Result<(), String> {
        tokio::select! {
            biased;
            // Timers come first: many observations must not delay a renewal.
            () = time::sleep_until(until) => {}
            observation = observations.recv() => {
                let observation = observation.ok_or("the leases of the ring cannot be watched")?;
                self.state.observed(observation, Instant::now());
            }
            () = self.member.shards.gate().drained(), if for_calls => {}
        }
        Ok(())
    }

    /// Updates the share as other tasks see it.
    fn count(&self, share: &Share) {
        let shards = &self.member.shards;
        shards.keep(share);
        if self.state.has_joined() {
            shards.gate().set(share);
            let (ring, members) = (&self.member.config.lease.name, share.members());
            tracing::info!(%ring, members, "the ring has changed");
        } else {
            // No call is running, so nothing of an earlier share is needed.
            shards.drop_lost();
        }
    }

    /// Begins to handle the keys of the share.
    fn join(&self, share: &Share) {
        let leadership = &self.member.leadership;
        leadership.sign_as(format!("{}/{}", leadership.namespace(), self.lease.name));
        self.member.shards.gate().set(share);
        self.note_renewal();
        let (ring, members) = (&self.member.config.lease.name, share.members());
        let lease = &self.lease.name;
        tracing::info!(%ring, %lease, members, "joined the ring");
    }

    /// Ends the running calls for lost keys.
    fn revoke(&self) {
        let ring = &self.member.config.lease.name;
        tracing::warn!(%ring, "calls take longer than the drain timeout: they are dropped, and their keys move");
        self.member.shards.gate().revoke();
    }

    /// Makes one attempt to renew the lease.
    async fn renew(&mut self) -> Result<(), String> {
        let renewal = self.lease.renew(self.state.acked());
        let renewal = time::timeout_at(self.state.deadline(), renewal).await;
        let now = Instant::now();
        match renewal.unwrap_or(Renewal::Failed) {
            Renewal::Lost(reason) => return Err(reason),
            Renewal::Failed => self.state.not_renewed(now),
            Renewal::Held { sent } => {
                self.state.renewed(sent, now);
                // Otherwise the answer was late, and the next step is the end.
                if self.state.has_joined() && now < self.state.deadline() {
                    self.note_renewal();
                }
            }
        }
        Ok(())
    }

    /// Takes an expired lease from its holder.
    async fn take_away(&mut self, expired: &Object) {
        let name = expired.metadata.name.as_deref().unwrap_or_default();
        // Bounded, because this member's own renewals wait meanwhile.
        let timeout = self.member.config.lease.renew_deadline / 4;
        let taken = time::timeout(timeout, self.lease.take_away(expired)).await;
        let now = Instant::now();
        match taken.ok().flatten() {
            Some(released) => {
                tracing::info!(
                    lease = name,
                    "took the lease of a member that has not renewed it"
                );
                let released = Observation::Seen(Box::new(released));
                self.state.observed(released, now);
            }
            None => self.state.not_taken(now),
        }
    }

    /// Deletes a lease without a holder.
    async fn clear_away(&self, released: &Object) {
        let timeout = self.member.config.lease.renew_deadline / 4;
        // A failure is ignored: another member may have deleted it, and nothing depends on the deletion.
        let _ = time::timeout(timeout, self.lease.clear_away(released)).await;
    }

    /// Publishes a renewal.
    fn note_renewal(&self) {
        let (leadership, slow) = (&self.member.leadership, self.lease.slow);
        let (sent, deadline) = (self.state.sent(), self.state.deadline());
        // A ring has no epochs: terms differ in the names of their leases.
        leadership.renewed(0, sent, deadline, slow);
    }

    /// Waits between two attempts to create the lease, for a random time.
    pub(super) async fn pause(&self) {
        let period = self.member.config.lease.retry_period;
        time::sleep(period.mul_f64(1.0 + JITTER * fastrand::f64())).await;
    }
}
