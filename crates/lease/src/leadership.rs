//! The leadership of a process, as its elector sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{self, Instant};

/// Whether this process leads, as its elector sees it.
///
/// Clones share one state. It describes this process only: when [`deadline`](Self::deadline) has passed, another
/// process may hold the lease.
///
/// ```no_run
/// use lariat::lease::Leadership;
///
/// # async fn example(leadership: Leadership) {
/// if leadership.acquired().await {
///     println!("leads, epoch {:?}", leadership.epoch());
///     leadership.lost().await;
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Leadership {
    /// The shared state.
    inner: Arc<Inner>,
}

/// The state that clones share.
struct Inner {
    /// The namespace of the lease.
    namespace: String,
    /// The name of the lease.
    name: String,
    /// Namespace and name, for messages.
    lease: String,
    /// The holder identity of this process.
    identity: Arc<str>,
    /// The lease duration.
    duration: Duration,
    /// The state of this process, for tasks that wait for changes.
    state: watch::Sender<LeadershipState>,
    /// The terms of this process.
    terms: Mutex<Terms>,
    /// The signature of the current term.
    signature: Mutex<Option<Arc<str>>>,
    /// The totals for the metrics.
    counters: Mutex<Counters>,
}

/// The state of a process in an election.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeadershipState {
    /// The process waits for the lease.
    Standby {
        /// The last known holder; `None` if the lease is free or unknown.
        holder: Option<Arc<str>>,
    },
    /// The process holds the lease.
    Leading {
        /// The number of transitions of the lease, which differs between any two holders.
        epoch: i32,
    },
    /// The process does not take part: it was stopped, or has lost the lease.
    Ended,
}

/// The terms of a process.
#[derive(Debug, Default)]
struct Terms {
    /// The current term; `None` unless this process leads. May have expired.
    current: Option<Renewed>,
    /// The number of terms that have begun.
    begun: u64,
}

/// A term of leadership, as of its last renewal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renewed {
    /// The number of the term in this process, from 1.
    pub(crate) number: u64,
    /// The number of transitions of the lease.
    epoch: i32,
    /// When the last answered renewal was sent.
    renewed: Instant,
    /// When this process stops leading unless it renews the lease.
    pub(crate) deadline: Instant,
}

/// Totals since the elector was created.
#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    /// The number of renewals.
    renewals: u64,
    /// The number of renewals that had to read the lease first.
    slow_renewals: u64,
    /// The number of acquisitions.
    acquired: u64,
}

/// The metrics of an election.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStatus {
    /// Namespace and name of the lease.
    pub lease: String,
    /// The holder identity of this process.
    pub identity: Arc<str>,
    /// The state of this process.
    pub state: LeadershipState,
    /// How many times this process acquired the lease.
    pub acquired: u64,
    /// How many times this process renewed the lease.
    pub renewals: u64,
    /// How many renewals had to read the lease first.
    ///
    /// client-go's `leader_election_slowpath_total`.
    pub slow_renewals: u64,
}

impl Leadership {
    /// Creates the leadership of a process on standby.
    pub(crate) fn new(namespace: &str, name: &str, identity: Arc<str>, duration: Duration) -> Self {
        let (state, _) = watch::channel(LeadershipState::Standby { holder: None });
        let inner = Inner {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            lease: format!("{namespace}/{name}"),
            identity,
            duration,
            state,
            terms: Mutex::default(),
            signature: Mutex::new(None),
            counters: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns whether this process leads now.
    ///
    /// From the deadline on it returns `false`, even if the elector has not noticed yet.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.deadline().is_some()
    }

    /// Returns when this process stops leading unless it renews the lease.
    ///
    /// `None` if it does not lead.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.renewed_term().map(|term| term.deadline)
    }

    /// Returns the number of transitions of the lease.
    ///
    /// `None` if this process does not lead. The number grows with each acquisition, also by the last holder, as long
    /// as the lease object exists. It is zero for a member of a ring.
    #[must_use]
    pub fn epoch(&self) -> Option<i32> {
        self.renewed_term().map(|term| term.epoch)
    }

    /// Returns the name of this term; `None` if this process does not lead.
    ///
    /// Programs put it into what they write, to record who wrote it. For a leader it is namespace, name and epoch of
    /// the lease: `shops/shop-operator#3`. It is unique as long as the lease object is neither deleted nor restored
    /// from a backup. For a member of a ring it is namespace and name of the member's lease, whose random suffix
    /// differs in each term: `shops/shop-operator-1f0a93c4`.
    #[must_use]
    pub fn signature(&self) -> Option<Arc<str>> {
        let signature = self.inner.signature.lock().clone();
        // The signature of the last term stays stored after its end.
        signature.filter(|_| self.leads())
    }

    /// Returns the state of this process.
    #[must_use]
    pub fn state(&self) -> LeadershipState {
        self.inner.state.borrow().clone()
    }

    /// Returns the namespace of the lease.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.inner.namespace
    }

    /// Returns the name of the lease.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns namespace and name of the lease: `shops/shop-operator`.
    #[must_use]
    pub fn lease(&self) -> &str {
        &self.inner.lease
    }

    /// Returns the holder identity of this process.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.inner.identity
    }

    /// Waits until this process leads; returns `false` if the election ends before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lariat::lease::Leadership;
    ///
    /// # async fn example(leadership: Leadership) {
    /// if leadership.acquired().await {
    ///     println!("{} leads", leadership.identity());
    /// }
    /// # }
    /// ```
    pub async fn acquired(&self) -> bool {
        let mut state = self.inner.state.subscribe();
        let decided = state.wait_for(|it| !matches!(it, LeadershipState::Standby { .. }));
        decided
            .await
            .is_ok_and(|it| matches!(*it, LeadershipState::Leading { .. }))
    }

    /// Waits until this process does not lead.
    ///
    /// Resolves immediately if it does not lead now; otherwise at its last deadline or when the election ends.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lariat::lease::Leadership;
    ///
    /// # async fn example(leadership: Leadership, work: impl Future<Output = ()>) {
    /// tokio::select! {
    ///     () = leadership.lost() => println!("another process takes over"),
    ///     () = work => {}
    /// }
    /// # }
    /// ```
    pub async fn lost(&self) {
        let mut state = self.inner.state.subscribe();
        loop {
            // Read again after each wait: a renewal moves the deadline but wakes no task, because it changes no
            // state.
            let Some(deadline) = self.deadline() else {
                return;
            };
            tokio::select! {
                biased;
                _ = state.wait_for(|it| !matches!(it, LeadershipState::Leading { .. })) => return,
                () = time::sleep_until(deadline) => {}
            }
        }
    }

    /// Checks that a leader has renewed its lease in time.
    ///
    /// It is client-go's `HealthzAdaptor`.
    ///
    /// It fails if this process counts as the leader although its last renewal is older than the lease duration plus
    /// `tolerance`, which means that the elector hangs. It does not fail on standby.
    ///
    /// # Errors
    ///
    /// A message for the health check, with the lease and the time since the last renewal.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::lease::Leadership;
    ///
    /// fn healthz(leadership: &Leadership) -> Result<(), String> {
    ///     leadership.check(Duration::from_secs(20))
    /// }
    /// # let _ = healthz;
    /// ```
    pub fn check(&self, tolerance: Duration) -> Result<(), String> {
        let leads = matches!(*self.inner.state.borrow(), LeadershipState::Leading { .. });
        // Not `renewed_term()`, which hides a term whose deadline has passed: this check looks for such a term.
        let Some(term) = self.inner.terms.lock().current.filter(|_| leads) else {
            return Ok(());
        };
        let age = term.renewed.elapsed();
        if age <= self.inner.duration + tolerance {
            return Ok(());
        }
        Err(format!(
            "the lease {} was not renewed for {age:.1?}",
            self.inner.lease
        ))
    }

    /// Returns the metrics of the election.
    #[must_use]
    pub fn status(&self) -> LeaseStatus {
        let Counters {
            renewals,
            slow_renewals,
            acquired,
        } = *self.inner.counters.lock();
        LeaseStatus {
            lease: self.inner.lease.clone(),
            identity: Arc::clone(&self.inner.identity),
            state: self.state(),
            acquired,
            renewals,
            slow_renewals,
        }
    }

    /// Returns a receiver of the state of this process.
    pub(crate) fn subscribe(&self) -> watch::Receiver<LeadershipState> {
        self.inner.state.subscribe()
    }

    /// Returns the current term, unless it has expired.
    pub(crate) fn renewed_term(&self) -> Option<Renewed> {
        let current = self.inner.terms.lock().current;
        current.filter(|term| Instant::now() < term.deadline)
    }

    /// Sets the state to standby and records the holder.
    pub(crate) fn stands_by(&self, holder: Option<&Arc<str>>) {
        self.inner.terms.lock().current = None;
        let state = LeadershipState::Standby {
            holder: holder.cloned(),
        };
        let is_new = self.inner.state.send_if_modified(|known| {
            let is_new = *known != state;
            *known = state;
            is_new
        });
        if is_new && let Some(holder) = holder {
            let (lease, identity) = (self.lease(), self.identity());
            tracing::info!(lease, identity, %holder, "standing by: another process holds the lease");
        }
    }

    /// Sets the signature of the term that begins with the next renewal.
    pub(crate) fn sign_as(&self, signature: String) {
        *self.inner.signature.lock() = Some(signature.into());
    }

    /// Records an acquisition or renewal whose request was sent at `renewed`.
    ///
    /// Returns whether it is an acquisition.
    pub(crate) fn renewed(
        &self,
        epoch: i32,
        renewed: Instant,
        deadline: Instant,
        slow: u64,
    ) -> bool {
        // Before the state changes, so that a task that is woken by the change finds the term.
        self.inner.terms.lock().renew(epoch, renewed, deadline);
        let leading = LeadershipState::Leading { epoch };
        let is_new = self.inner.state.send_if_modified(|known| {
            let is_new = *known != leading;
            *known = leading;
            is_new
        });
        let mut counters = self.inner.counters.lock();
        // The first renewal of a term is its acquisition.
        counters.acquired += u64::from(is_new);
        counters.renewals += u64::from(!is_new);
        counters.slow_renewals = slow;
        is_new
    }

    /// Ends the leadership, until the next run.
    pub(crate) fn end(&self) {
        // Cleared before the state changes: a task that is woken by the change must not see a term any more.
        self.inner.terms.lock().current = None;
        self.inner.state.send_replace(LeadershipState::Ended);
    }
}

impl Terms {
    /// Renews the current term, or begins one.
    fn renew(&mut self, epoch: i32, renewed: Instant, deadline: Instant) {
        let known = self.current.filter(|term| term.epoch == epoch);
        self.begun += u64::from(known.is_none());
        self.current = Some(Renewed {
            number: known.map_or(self.begun, |term| term.number),
            epoch,
            renewed,
            deadline,
        });
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("lease", &self.inner.lease)
            .field("identity", &self.inner.identity)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
