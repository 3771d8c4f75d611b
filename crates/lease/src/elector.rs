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
/// As in client-go, the times in a lease come from other machines and are only compared for changes. A lease is free
/// once it has no holder, or once it has not been seen to change for its duration. So clocks may differ by any amount.
/// How much faster one clock may run than another is the ratio of the lease duration to the renew deadline.
///
/// Three things differ from client-go:
///
/// - A process on standby watches the lease instead of polling it. It takes over immediately when the lease is
///   released.
/// - A leader's time ends a renew deadline after its last answered renewal was *sent*, not answered.
/// - A lease that is deleted without being released counts as held for its duration. Its holder, which does not know
///   yet, creates it again with its next renewal.
///
/// ```no_run
/// use lariat::lease::Elector;
/// use lariat::Lease;
///
/// # async fn example(client: kube::Client) -> Result<(), lariat::lease::LeaseError> {
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
    /// Sends the requests.
    api: Api<Object>,
    /// The configuration.
    config: Lease,
    /// The state that other tasks see.
    leadership: Leadership,
    /// Logs refused requests once.
    refusals: Refusals,
}

impl Elector {
    /// Creates an elector, which does nothing until it [runs](Self::run).
    ///
    /// # Errors
    ///
    /// If the configuration is invalid; see [`Lease::validate`].
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

    /// Returns the same elector, which sends its requests through another client.
    ///
    /// Both have one [leadership](Self::leadership); run only one of them at a time.
    ///
    /// A client has tasks on the runtime that it was created on. An elector that runs where handlers cannot block its
    /// thread needs a client of that runtime.
    #[must_use]
    pub fn through(&self, client: Client) -> Self {
        Self {
            api: Api::namespaced(client, self.leadership.namespace()),
            config: self.config.clone(),
            leadership: self.leadership.clone(),
            refusals: Refusals::default(),
        }
    }

    /// Sets the leadership to standby before a further [run](Self::run).
    ///
    /// After a run the leadership is [`LeadershipState::Ended`](crate::LeadershipState::Ended) until the next run is
    /// polled for the first time. A task that waits for the leadership in between would return as if the next run had
    /// ended.
    pub fn standby(&self) {
        self.leadership.stands_by(None);
    }

    /// Acquires the lease and renews it until `stop` resolves, then releases it.
    ///
    /// A lease that is [kept on stop](Lease::keep_on_stop) is not released. After a run the elector can run again; it
    /// begins on standby.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Lost`] if the lease was not renewed in time, or if another process holds it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the leadership but does not release the lease. Other processes wait until it expires.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lariat::lease::{Elector, LeaseError};
    ///
    /// # async fn example(elector: Elector) -> Result<(), LeaseError> {
    /// let interrupted = async {
    ///     // Resolves when the program is to stop.
    ///     # std::future::pending::<()>().await
    /// };
    /// elector.run(interrupted).await?;
    /// # Ok(()) }
    /// ```
    pub async fn run(&self, stop: impl Future<Output = ()>) -> Result<(), LeaseError> {
        // Also when this future is dropped, because the lease is not renewed any more.
        let _ended = Ended(&self.leadership);
        self.standby();
        let mut campaign = Campaign::new(self);
        // `select` polls `stop` first, so a stop is never reported as a loss that happens at the same time.
        let lost = {
            let stop = pin!(stop);
            let held = pin!(campaign.run());
            match futures::future::select(stop, held).await {
                futures::future::Either::Left(_) => None,
                futures::future::Either::Right((reason, _)) => Some(reason),
            }
        };
        // Ended before the release, so that nothing acts as the leader after another process has taken the lease.
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

/// Ends the leadership when a run returns or is dropped.
struct Ended<'a>(&'a Leadership);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// One run of an elector.
struct Campaign<'a> {
    /// The elector.
    elector: &'a Elector,
    /// The state machine.
    election: Election,
    /// When this process stops leading unless it renews the lease.
    deadline: Instant,
}

impl<'a> Campaign<'a> {
    /// Begins a run without knowledge of the lease.
    fn new(elector: &'a Elector) -> Self {
        let identity = Arc::clone(&elector.leadership.status().identity);
        Self {
            elector,
            election: Election::new(identity, elector.config.seconds()),
            deadline: Instant::now(),
        }
    }

    /// Acquires and renews the lease; returns the reason for which it was lost.
    async fn run(&mut self) -> String {
        self.acquire().await;
        loop {
            let due = Instant::now() + self.elector.config.retry_period;
            time::sleep_until(due).await;
            if let Err(reason) = self.renew(due).await {
                return reason;
            }
        }
    }

    /// Waits for the lease and acquires it.
    async fn acquire(&mut self) {
        loop {
            match self.attempt().await {
                Next::Held => return,
                Next::HeldBy(holder) => {
                    self.elector.leadership.stands_by(Some(&holder));
                    self.watch().await;
                }
                // A random time, so that processes whose attempts collided do not collide again.
                _ => self.pause().await,
            }
        }
    }

    /// Renews the lease, with as many attempts as fit before the deadline; `due` is when to begin.
    async fn renew(&mut self, due: Instant) -> Result<(), String> {
        let (deadline, began) = (self.deadline, Instant::now());
        let tries = async {
            loop {
                match self.attempt().await {
                    Next::Held => return Ok(()),
                    // No further attempt: another process leads already.
                    Next::HeldBy(holder) => return Err(format!("{holder} holds it")),
                    _ => time::sleep(self.elector.config.retry_period).await,
                }
            }
        };
        // The deadline of the last answered renewal, not one that begins with this attempt: other processes count from
        // that renewal.
        let renewed = time::timeout_at(deadline, tries).await;
        renewed.unwrap_or_else(|_| Err(self.elector.config.not_renewed(due, began, deadline)))
    }

    /// Makes one attempt to acquire or renew the lease.
    async fn attempt(&mut self) -> Next {
        let mut request = self.election.attempt(moment());
        loop {
            // Before the request: the lease counts from the earliest moment at which another process may have seen it.
            let sent = Instant::now();
            let answer = self.elector.send(request).await;
            match self.election.answered(answer, moment()) {
                Next::Send(next) => request = next,
                Next::Held => return self.held(sent),
                next => return next,
            }
        }
    }

    /// Publishes an acquisition or renewal whose request was sent at `sent`.
    fn held(&mut self, sent: Instant) -> Next {
        let deadline = sent + self.elector.config.renew_deadline;
        if deadline <= Instant::now() {
            // The process was suspended, or the answer was late. Another process may have taken over by now.
            return Next::Failed;
        }
        // Counted from when the request was sent. A process on standby counts from when it saw the renewal, which is
        // later.
        self.deadline = deadline;
        let epoch = self.election.transitions();
        let slow = self.election.slow_renewals();
        let leadership = &self.elector.leadership;
        // Before the term is published, so that a task that sees the term sees its own signature and not that of an
        // earlier term.
        if leadership.epoch() != Some(epoch) {
            leadership.sign_as(format!("{}#{epoch}", leadership.lease()));
        }
        if leadership.renewed(epoch, sent, deadline, slow) {
            let (lease, identity) = (leadership.lease(), leadership.identity());
            tracing::info!(lease, identity, epoch, "acquired the lease");
        }
        Next::Held
    }

    /// Watches the lease until it is free or has expired.
    ///
    /// Returns earlier if the watch is silent for too long. If the watch fails, waits for the next attempt instead.
    async fn watch(&mut self) {
        let Some(until) = self.election.silent_until() else {
            return;
        };
        let Some(version) = self.election.version().map(str::to_owned) else {
            return self.pause().await;
        };
        // The field selector limits the watch to this lease; a namespace may have many.
        let params = WatchParams::default()
            .fields(&format!("metadata.name={}", self.elector.config.name))
            .timeout(WATCH_SECONDS);
        let opened = self.elector.api.watch(&params, &version);
        let Ok(Ok(events)) = time::timeout_at(until, opened).await else {
            return self.pause().await;
        };
        let mut events = events.boxed();
        // Ends when the lease is free, and the next attempt acquires it.
        while let Some(until) = self.election.silent_until() {
            match time::timeout_at(until, events.try_next()).await {
                Ok(Ok(Some(WatchEvent::Added(lease) | WatchEvent::Modified(lease)))) => {
                    self.election.observe(lease, Instant::now());
                    self.elector.leadership.stands_by(self.election.holder());
                }
                // A deletion is no release: the holder may still lead, and counts for its duration.
                Ok(Ok(Some(WatchEvent::Deleted(_)))) => self.election.missing(Instant::now()),
                Ok(Ok(Some(WatchEvent::Bookmark(_)))) => {}
                // The lease has expired, or the holder or the watch is dead. The next attempt reads the lease.
                Err(_) => return,
                // The watch has ended or its version is too old. The next attempt reads the lease before it watches
                // again.
                Ok(Ok(None | Some(WatchEvent::Error(_))) | Err(_)) => return self.pause().await,
            }
        }
    }

    /// Waits between two attempts to acquire the lease, for a random time.
    async fn pause(&self) {
        let period = self.elector.config.retry_period;
        time::sleep(period.mul_f64(1.0 + JITTER * fastrand::f64())).await;
    }

    /// Releases the lease if it is held; gives up after the renew deadline.
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
                // Every read goes through `release`, which decides again whether there is anything to release.
                if request == Request::Get {
                    request = match self.election.release() {
                        Some(request) => request,
                        None => return,
                    };
                }
            }
        };
        // Bounded, so that an unreachable server does not keep the program from stopping. The lease expires then.
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
        // Half of the deadline, so that a hanging request leaves time for a second one.
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
