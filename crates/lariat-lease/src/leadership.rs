//! The leadership of a process, as its elector sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{self, Instant};

/// Whether this process leads, as its elector sees it.
///
/// A clone is the same leadership. It is about this process only: another one may hold the lease as soon as
/// [`deadline`](Self::deadline) has passed by its own clock.
///
/// ```no_run
/// use lariat_lease::Leadership;
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
    inner: Arc<Inner>,
}

struct Inner {
    namespace: String,
    name: String,
    /// Both, for messages.
    lease: String,
    identity: Arc<str>,
    duration: Duration,
    standing: watch::Sender<Standing>,
    term: Mutex<Option<Term>>,
    /// The signature of the current term.
    signature: Mutex<Option<Arc<str>>>,
    counters: Mutex<Counters>,
}

/// The state of a process in an election.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// It waits for the lease.
    Standby {
        /// The holder, as far as is known.
        holder: Option<Arc<str>>,
    },
    /// It holds the lease.
    Leading {
        /// The number of transitions of the lease, which differs for any two holders.
        epoch: i32,
    },
    /// It does not take part any more: it has lost the lease, or was stopped.
    Ended,
}

/// A term of leadership, as of its last renewal.
#[derive(Debug, Clone, Copy)]
struct Term {
    epoch: i32,
    /// When the last answered renewal was sent.
    renewed: Instant,
    /// Until when no other process holds the lease, even if its clock runs faster.
    deadline: Instant,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    renewals: u64,
    slow_renewals: u64,
    acquired: u64,
}

/// The metrics of an election.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStatus {
    /// Namespace and name of the lease.
    pub lease: String,
    /// The identity of this process.
    pub identity: Arc<str>,
    /// The state of this process.
    pub standing: Standing,
    /// How often it acquired the lease.
    pub acquired: u64,
    /// How often it renewed the lease.
    pub renewals: u64,
    /// How many renewals had to read the lease first.
    ///
    /// client-go counts them as `leader_election_slowpath_total`.
    pub slow_renewals: u64,
}

impl Leadership {
    pub(crate) fn new(namespace: &str, name: &str, identity: Arc<str>, duration: Duration) -> Self {
        let (standing, _) = watch::channel(Standing::Standby { holder: None });
        let inner = Inner {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            lease: format!("{namespace}/{name}"),
            identity,
            duration,
            standing,
            term: Mutex::new(None),
            signature: Mutex::new(None),
            counters: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns whether this process leads at this moment.
    ///
    /// It returns `false` from the deadline on, whether or not the elector has noticed.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.deadline().is_some()
    }

    /// Returns until when this process leads; `None` if it does not lead.
    ///
    /// Each renewal moves it.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.term().map(|term| term.deadline)
    }

    /// Returns the transitions of the lease; `None` if this process does not lead.
    #[must_use]
    pub fn epoch(&self) -> Option<i32> {
        self.term().map(|term| term.epoch)
    }

    /// Returns the name of this term, to sign what is written in it.
    ///
    /// For a leader it is namespace, name and epoch of the lease, as in `shops/shop-operator#3`; for a member of a ring
    /// namespace and name of its own lease, as in `shops/shop-operator-1f0a93c4`. It differs for any two terms of a
    /// lease. `None` if this process does not lead.
    #[must_use]
    pub fn signature(&self) -> Option<Arc<str>> {
        let signature = self.inner.signature.lock().clone();
        signature.filter(|_| self.leads())
    }

    /// Returns the state of this process.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.inner.standing.borrow().clone()
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

    /// Returns namespace and name of the lease, as in `shops/shop-operator`.
    #[must_use]
    pub fn lease(&self) -> &str {
        &self.inner.lease
    }

    /// Returns the holder identity of this process.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.inner.identity
    }

    /// Waits until this process leads; `false` if its election ends before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn acquired(&self) -> bool {
        let mut standing = self.inner.standing.subscribe();
        let decided = standing.wait_for(|it| !matches!(it, Standing::Standby { .. }));
        decided
            .await
            .is_ok_and(|it| matches!(*it, Standing::Leading { .. }))
    }

    /// Waits until this process does not lead.
    ///
    /// Resolves immediately if it does not lead; otherwise at its last deadline or at the end of its election.
    ///
    /// ```no_run
    /// use lariat_lease::Leadership;
    ///
    /// # async fn example(leadership: Leadership, work: impl Future<Output = ()>) {
    /// tokio::select! {
    ///     () = leadership.lost() => println!("another process takes over"),
    ///     () = work => {}
    /// }
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn lost(&self) {
        let mut standing = self.inner.standing.subscribe();
        loop {
            // A renewal moves the deadline without a wake-up.
            let Some(deadline) = self.deadline() else {
                return;
            };
            tokio::select! {
                biased;
                _ = standing.wait_for(|it| !matches!(it, Standing::Leading { .. })) => return,
                () = time::sleep_until(deadline) => {}
            }
        }
    }

    /// Checks that a leader has renewed its lease in time: client-go's `HealthzAdaptor`.
    ///
    /// It fails only if this process counts as the leader although its last renewal is older than the lease duration
    /// and `tolerance`: its elector hangs.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat_lease::Leadership;
    ///
    /// fn healthz(leadership: &Leadership) -> Result<(), String> {
    ///     leadership.check(Duration::from_secs(20))
    /// }
    /// # let _ = healthz;
    /// ```
    ///
    /// # Errors
    ///
    /// A message for the health check, with the lease and the time since the last renewal.
    pub fn check(&self, tolerance: Duration) -> Result<(), String> {
        let leads = matches!(*self.inner.standing.borrow(), Standing::Leading { .. });
        let Some(term) = self.inner.term.lock().filter(|_| leads) else {
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
            standing: self.standing(),
            acquired,
            renewals,
            slow_renewals,
        }
    }

    fn term(&self) -> Option<Term> {
        self.inner
            .term
            .lock()
            .filter(|term| Instant::now() < term.deadline)
    }

    /// Notes the holder of the lease while this process waits for it.
    pub(crate) fn stands_by(&self, holder: Option<&Arc<str>>) {
        *self.inner.term.lock() = None;
        let standing = Standing::Standby {
            holder: holder.cloned(),
        };
        let is_new = self.inner.standing.send_if_modified(|known| {
            let is_new = *known != standing;
            *known = standing;
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

    /// Notes an acquisition or renewal whose request was sent at `renewed`.
    ///
    /// Returns whether it is the acquisition.
    pub(crate) fn renewed(
        &self,
        epoch: i32,
        renewed: Instant,
        deadline: Instant,
        slow: u64,
    ) -> bool {
        *self.inner.term.lock() = Some(Term {
            epoch,
            renewed,
            deadline,
        });
        let leading = Standing::Leading { epoch };
        let is_new = self.inner.standing.send_if_modified(|known| {
            let is_new = *known != leading;
            *known = leading;
            is_new
        });
        let mut counters = self.inner.counters.lock();
        counters.acquired += u64::from(is_new);
        counters.renewals += u64::from(!is_new);
        counters.slow_renewals = slow;
        is_new
    }

    /// Ends the leadership for good.
    pub(crate) fn end(&self) {
        *self.inner.term.lock() = None;
        self.inner.standing.send_replace(Standing::Ended);
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("lease", &self.inner.lease)
            .field("identity", &self.inner.identity)
            .field("standing", &self.standing())
            .finish_non_exhaustive()
    }
}
