//! The task that acquires, renews and releases a lease.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::api::{Api, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use tokio::time::{self, Instant};

use crate::clock::{SHORTEST_TIMEOUT, moment};
use crate::config::{JITTER, Lease, own_identity, own_namespace};
use crate::election::{Election, Next, Request};
use crate::error::LeaseError;
use crate::leadership::Leadership;
use crate::request::{Answer, Refusals};

/// How long a watch of the lease stays open, in seconds.
///
/// The server's own limit is higher.
const WATCH_SECONDS: u32 = 290;

/// Acquires a lease, renews it, and releases it: client-go's `LeaderElector`.
///
/// As there, the times in the lease are those of other machines, and are compared for change only. A lease is free once
/// it has no holder, or has not been seen to change for its duration. So any difference between clocks is tolerated;
/// how much faster one clock may run is the ratio of the lease duration to the renew deadline.
///
/// Three things differ from client-go:
///
/// - A process on standby watches the lease. It takes over immediately when the lease is released, and sends no request
///   meanwhile.
/// - A leader's time ends a renew deadline after its last answered renewal was *sent*.
/// - A lease that is deleted without being released counts as held for its duration. Its holder, which does not know
///   yet, creates it again with its next renewal.
///
/// ```no_run
/// use lariat_lease::{Elector, Lease};
///
/// # async fn example(client: kube::Client) -> Result<(), lariat_lease::LeaseError> {
/// let elector = Elector::new(client, Lease::new("shop-operator"))?;
/// let leadership = elector.leadership();
/// tokio::select! {
///     ended = elector.run(std::future::pending()) => ended?,
///     _ = leadership.acquired() => println!("{} leads", leadership.identity()),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Elector {
    api: Api<Object>,
    config: Lease,
    leadership: Leadership,
    refusals: Refusals,
}

impl Elector {
    /// Creates an elector, which does nothing until it runs.
    ///
    /// # Errors
    ///
    /// The configuration is invalid: see [`Lease::validate`].
    pub fn new(client: Client, lease: Lease) -> Result<Self, LeaseError> {
        lease.validate()?;
        let namespace = lease
            .namespace
            .clone()
            .or_else(own_namespace)
            .unwrap_or_else(|| client.default_namespace().to_owned());
        let identity: Arc<str> = lease.identity.clone().unwrap_or_else(own_identity).into();
        Ok(Self {
            api: Api::namespaced(client, &namespace),
            leadership: Leadership::new(&namespace, &lease.name, identity, lease.duration),
            config: lease,
            refusals: Refusals::default(),
        })
    }

    /// Returns the leadership of this process.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Sets the leadership to standby, before a [run](Self::run) begins.
    ///
    /// After a run the leadership has ended, until the next run is first polled. A task that waits for the leadership
    /// meanwhile would take that for the end of the next run.
    pub fn stand_by(&self) {
        self.leadership.stands_by(None);
    }

    /// Acquires the lease and renews it until `stop` resolves, then releases it.
    ///
    /// A lease that is [kept on stop](Lease::keep_on_stop) is not released. An elector can run again after a run: it
    /// begins on standby.
    ///
    /// ```no_run
    /// use lariat_lease::{Elector, LeaseError};
    ///
    /// # async fn example(elector: Elector) -> Result<(), LeaseError> {
    /// let interrupted = async {
    ///     // Resolves when the program is to stop.
    ///     # std::future::pending::<()>().await
    /// };
    /// elector.run(interrupted).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The lease was lost: it was not renewed in time, or another process holds it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the lease as it is; other processes wait until it expires.
    pub async fn run(&self, stop: impl Future<Output = ()>) -> Result<(), LeaseError> {
        let _ended = Ended(&self.leadership);
        self.stand_by();
        let mut campaign = Campaign::new(self);
        let lost = {
            let stop = pin!(stop);
            let held = pin!(campaign.run());
            match futures::future::select(stop, held).await {
                futures::future::Either::Left(_) => None,
                futures::future::Either::Right((reason, _)) => Some(reason),
            }
        };
        // Ended before the release, so that nothing acts as the leader while the lease is given away.
        self.leadership.end();
        let Some(reason) = lost else {
            if self.config.releases {
                campaign.release().await;
            }
            return Ok(());
        };
        let lease = self.leadership.lease().to_owned();
        tracing::warn!(%lease, identity = self.leadership.identity(), "lost the lease: {reason}");
        Err(LeaseError::Lost { lease, reason })
    }
}

/// Ends the leadership when a run is dropped.
struct Ended<'a>(&'a Leadership);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

struct Campaign<'a> {
    elector: &'a Elector,
    election: Election,
    /// Until when this process holds the lease.
    deadline: Instant,
}

impl<'a> Campaign<'a> {
    fn new(elector: &'a Elector) -> Self {
        let identity = Arc::clone(&elector.leadership.status().identity);
        Self {
            elector,
            election: Election::new(identity, elector.config.seconds()),
            deadline: Instant::now(),
        }
    }

    /// Acquires and holds the lease; returns why it was lost.
    async fn run(&mut self) -> String {
        self.acquire().await;
        loop {
            time::sleep(self.elector.config.retry_period).await;
            if let Err(reason) = self.renew().await {
                return reason;
            }
        }
    }

    async fn acquire(&mut self) {
        loop {
            match self.attempt().await {
                Next::Held => return,
                Next::HeldBy(holder) => {
                    self.elector.leadership.stands_by(Some(&holder));
                    self.watch().await;
                }
                _ => self.pause().await,
            }
        }
    }

    /// Renews the lease, with as many attempts as there is time for.
    async fn renew(&mut self) -> Result<(), String> {
        let deadline = self.deadline;
        let tries = async {
            loop {
                match self.attempt().await {
                    Next::Held => return Ok(()),
                    Next::HeldBy(holder) => return Err(format!("{holder} holds it")),
                    _ => time::sleep(self.elector.config.retry_period).await,
                }
            }
        };
        // The deadline is that of the last answered renewal, not of this attempt.
        let renewed = time::timeout_at(deadline, tries).await;
        renewed.unwrap_or_else(|_| {
            let after = self.elector.config.renew_deadline;
            Err(format!("it was not renewed within {after:?}"))
        })
    }

    /// Makes one attempt to acquire or renew the lease.
    async fn attempt(&mut self) -> Next {
        let mut request = self.election.attempt(moment());
        loop {
            let sent = Instant::now();
            let answer = self.elector.send(request).await;
            match self.election.answered(answer, moment()) {
                Next::Send(next) => request = next,
                Next::Held => return self.held(sent),
                next => return next,
            }
        }
    }

    fn held(&mut self, sent: Instant) -> Next {
        let deadline = sent + self.elector.config.renew_deadline;
        if deadline <= Instant::now() {
            // The process was paused, or the answer came late: another process may have taken over.
            return Next::Failed;
        }
        // Counted from when the request was sent: the standby counts from when it saw the renewal, which is later.
        self.deadline = deadline;
        let epoch = self.election.transitions();
        let slow = self.election.slow_renewals();
        let leadership = &self.elector.leadership;
        if leadership.epoch() != Some(epoch) {
            leadership.sign_as(format!("{}#{epoch}", leadership.lease()));
        }
        if leadership.renewed(epoch, sent, deadline, slow) {
            let (lease, identity) = (leadership.lease(), leadership.identity());
            tracing::info!(lease, identity, epoch, "acquired the lease");
        }
        Next::Held
    }

    /// Waits until the lease is free or has expired, or the watch is too silent.
    ///
    /// Without a watch it waits until the next attempt.
    async fn watch(&mut self) {
        let Some(until) = self.election.silent_until() else {
            return;
        };
        let Some(version) = self.election.version().map(str::to_owned) else {
            return self.pause().await;
        };
        let params = WatchParams::default()
            .fields(&format!("metadata.name={}", self.elector.config.name))
            .timeout(WATCH_SECONDS);
        let opened = self.elector.api.watch(&params, &version);
        let Ok(Ok(events)) = time::timeout_at(until, opened).await else {
            return self.pause().await;
        };
        let mut events = events.boxed();
        while let Some(until) = self.election.silent_until() {
            match time::timeout_at(until, events.try_next()).await {
                Ok(Ok(Some(WatchEvent::Added(lease) | WatchEvent::Modified(lease)))) => {
                    self.election.observe(lease, Instant::now());
                    self.elector.leadership.stands_by(self.election.holder());
                }
                Ok(Ok(Some(WatchEvent::Deleted(_)))) => self.election.missing(Instant::now()),
                Ok(Ok(Some(WatchEvent::Bookmark(_)))) => {}
                // The lease has expired, or the holder or the watch is dead: the next attempt reads it.
                Err(_) => return,
                Ok(Ok(None | Some(WatchEvent::Error(_))) | Err(_)) => return self.pause().await,
            }
        }
    }

    /// Waits between two attempts to acquire the lease; the time is random.
    async fn pause(&self) {
        let period = self.elector.config.retry_period;
        time::sleep(period.mul_f64(1.0 + JITTER * fastrand::f64())).await;
    }

    /// Releases the lease if it is held, within the renew deadline.
    async fn release(&mut self) {
        let Some(mut request) = self.election.release() else {
            return;
        };
        let tries = async {
            loop {
                let answer = self.elector.send(request).await;
                request = match self.election.answered(answer, moment()) {
                    Next::Send(next) => next,
                    Next::Released => return,
                    _ => {
                        time::sleep(self.elector.config.retry_period).await;
                        Request::Get
                    }
                };
                if request == Request::Get {
                    request = match self.election.release() {
                        Some(request) => request,
                        None => return,
                    };
                }
            }
        };
        let released = time::timeout(self.elector.config.renew_deadline, tries).await;
        if released.is_err() {
            let lease = self.elector.leadership.lease();
            tracing::warn!(%lease, "could not release the lease: others wait until it expires");
        }
    }
}

impl Elector {
    /// Sends a request, which fails if it takes too long.
    ///
    /// A failed request may have taken effect.
    async fn send(&self, request: Request) -> Answer {
        let timeout = (self.config.renew_deadline / 2).max(SHORTEST_TIMEOUT);
        let sent = async {
            match request {
                Request::Get => self.api.get(&self.config.name).await,
                Request::Create(record) => {
                    let lease = record.create(&self.config.name, self.leadership.namespace());
                    self.api.create(&PostParams::default(), &lease).await
                }
                Request::Update(lease) => {
                    self.api
                        .replace(&lease.name_any(), &PostParams::default(), &lease)
                        .await
                }
            }
        };
        let lease = self.leadership.lease();
        self.refusals.answer(lease, timeout, sent).await
    }
}
