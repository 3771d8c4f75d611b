//! The state that all requests share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lariat_apimachinery::kinds::Kinds;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::access::{Access, Attributes, Decision, User};
use crate::clock::Clock;
use crate::journal::Journal;
use crate::open_watches::OpenWatches;
use crate::random::Random;
use crate::registrations::Registrations;
use crate::rules::Rules;
use crate::status::ApiError;
use crate::store::{NotDurable, Snapshot, Store};
use crate::switches::{Settings, Switches};
use crate::time::Time;
use crate::workloads::Simulated;

/// The state of one cluster.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) store: Store,
    pub(crate) kinds: Kinds,
    pub(crate) clock: Clock,
    pub(crate) time: Time,
    /// The switches of the controllers.
    pub(crate) switches: Switches,
    /// The simulation of nodes and workloads, if there is one.
    pub(crate) workloads: Option<Simulated>,
    pub(crate) random: Random,
    pub(crate) journal: Journal,
    pub(crate) faults: Rules,
    pub(crate) watches: Arc<OpenWatches>,
    /// The place in the [sequence](Store::sequence) that the control plane has reached.
    pub(crate) looked: watch::Sender<u64>,
    /// Serves the [admin endpoint](crate::api::admin).
    pub(crate) admin: bool,
    /// The snapshots that were taken there, by name.
    pub(crate) snapshots: Mutex<BTreeMap<String, Snapshot>>,
    pub(crate) access: Access,
    pub(crate) registrations: Registrations,
    /// The addresses of Services that webhooks are behind, by namespace and name.
    pub(crate) services: BTreeMap<(String, String), SocketAddr>,
    /// Held while something is stored that a quota limits.
    pub(crate) quotas: Mutex<()>,
    /// The number of connections that were accepted.
    pub(crate) connections: AtomicU64,
    /// The number of clients cut off because they took or sent nothing.
    pub(crate) cut_off: AtomicU64,
    /// Ends everything that runs for the cluster, open watches included.
    pub(crate) stopped: CancellationToken,
}

impl Server {
    /// Checks that a user may do something.
    ///
    /// # Errors
    ///
    /// Nothing allows it.
    pub(crate) fn check(&self, user: &User, attributes: &Attributes) -> Result<(), ApiError> {
        match self.access.decide(&self.store, user, attributes) {
            Decision::Allowed(_) => Ok(()),
            Decision::NoOpinion(reason) => Err(attributes.denied(user.name(), &reason)),
        }
    }

    pub(crate) fn new(
        store: Store,
        seed: Option<u64>,
        admin: bool,
        control: Settings,
        access: Access,
    ) -> Self {
        Self {
            kinds: Kinds::new(|name| store.table(name)),
            registrations: Registrations::new(&store),
            store,
            clock: Clock::new(),
            switches: Switches::new(&control),
            time: control.time,
            workloads: control.workloads.map(Simulated::new),
            services: control.services,
            random: Random::new(seed),
            journal: Journal::new(Journal::CAPACITY),
            faults: Rules::new(seed),
            watches: Arc::default(),
            looked: watch::Sender::new(0),
            admin,
            snapshots: Mutex::default(),
            access,
            quotas: Mutex::default(),
            connections: AtomicU64::new(0),
            cut_off: AtomicU64::new(0),
            stopped: CancellationToken::new(),
        }
    }

    /// Locks the quotas, so that two requests cannot use the same rest.
    pub(crate) fn hold_quotas(&self) -> MutexGuard<'_, ()> {
        self.quotas.lock()
    }

    /// Returns whether the OpenID documents are served, by which others verify tokens.
    pub(crate) fn has_openid(&self) -> bool {
        self.access.tokens.signer().verifies()
    }

    /// Counts a client that was cut off.
    pub(crate) fn count_cut_off(&self) {
        self.cut_off.fetch_add(1, Ordering::Relaxed);
    }

    /// Continues with other uids.
    ///
    /// A restored snapshot may have brought those that would follow.
    pub(crate) fn vary_names(&self) {
        self.random.vary(self.store.revision());
    }

    /// Waits until the control plane has seen everything that is stored now.
    pub(crate) async fn reconciled(&self) -> Result<(), NotDurable> {
        // Taken first: changes from now on are not waited for.
        let wanted = self.store.sequence();
        // The control plane sees no change that the disk does not take.
        self.store.settled().await?;
        let mut looked = self.looked.subscribe();
        tokio::select! {
            _ = looked.wait_for(|seen| *seen >= wanted) => {}
            () = self.stopped.cancelled() => {}
        }
        Ok(())
    }
}
