//! The fleet and its members.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use kube::Client;
use lariat_controller::{Enqueue, SharedControllerFactory};
use lariat_core::Gvk;
use lariat_operator::Operator;
use parking_lot::Mutex;

use crate::error::{FleetError, SetupError};
use crate::identity::Identities;
use crate::key::ClusterKey;
use crate::source::ClusterSource;
use crate::status::{MemberStatus, State};
use crate::wanted::{SourceId, WantedClusters};

/// An operator over a set of clusters; clones share one fleet.
///
/// **Experimental:** see the [crate](crate) for what is missing.
///
/// Each cluster has its own operator. When a cluster joins, the fleet asks it for the uid of its namespace
/// `kube-system`, builds its factory, calls the setup function, which registers the reconcilers, and starts the
/// operator. If that fails, it is retried after a delay that grows from 1 second to 1 minute. When a cluster leaves, its
/// operator is stopped: keys that are due are processed first, within the grace period of the factory.
///
/// A member whose cluster another member has, by that uid, is not started; its status names the other one. It is started
/// when the other one has left. Clusters whose credentials may not get the namespace are not compared.
///
/// When the credentials of a cluster change, the fleet connects with the new ones first. Its operator is stopped and
/// started with them only if the cluster answers; until then it runs with the present ones, and the status has the
/// error.
///
/// A cluster that becomes unreachable later stays in the fleet. Its caches keep their objects, and its watches are
/// opened again when it answers.
///
/// ```no_run
/// use lariat::fleet::{Fleet, Member, SetupError};
///
/// # async fn example(client: kube::Client) -> Result<(), lariat::fleet::FleetError> {
/// let fleet = Fleet::builder("pod-logger", |member: &Member| {
///     println!("registers the reconcilers of {}", member.name());
///     Ok::<_, SetupError>(())
/// })
/// .build();
/// fleet.add("eu-1", client)?;
/// fleet.run(5, lariat::termination()).await
/// # }
/// ```
#[derive(Clone)]
pub struct Fleet(pub(crate) Arc<FleetState>);

/// A handle of a fleet that does not keep it alive.
///
/// Reconcilers use it to reach other clusters. A [`Fleet`] in a reconciler would keep itself alive.
#[derive(Clone)]
pub struct WeakFleet(Weak<FleetState>);

/// A cluster of a fleet and its operator; clones share one member.
///
/// A member stands for one stay of the cluster in the fleet. After the cluster has left and joined again, or has got
/// other credentials, there is a new member with a new operator.
///
/// A member keeps the factory of its operator alive, so reconcilers should store its [name](Self::name) and the
/// [fleet](Self::fleet) instead of the member.
#[derive(Clone)]
pub struct Member {
    /// The name of the cluster.
    name: Arc<str>,
    /// The operator in the cluster.
    operator: Operator,
    /// The fleet.
    fleet: WeakFleet,
}

/// A function that registers the reconcilers of a cluster.
pub(crate) type Setup = dyn Fn(&Member) -> Result<(), SetupError> + Send + Sync;
/// A function that builds the factory of a cluster.
pub(crate) type MakeFactory = dyn Fn(&str, Client) -> SharedControllerFactory + Send + Sync;

/// The state that clones of a fleet share.
pub(crate) struct FleetState {
    /// The name of the operator in each cluster.
    pub(crate) name: String,
    /// Registers the reconcilers of a cluster.
    pub(crate) setup: Box<Setup>,
    /// Builds the factory of a cluster.
    pub(crate) factory: Box<MakeFactory>,
    /// The clusters that the fleet should have.
    pub(crate) wanted: Arc<WantedClusters>,
    /// The sources of clusters.
    pub(crate) sources: Vec<Arc<ClusterSource>>,
    /// The factory whose lease the fleet needs, beside those of the sources.
    pub(crate) fenced_by: Option<SharedControllerFactory>,
    /// Whether a run, or a task of an aborted run, has not ended yet.
    pub(crate) is_running: AtomicBool,
    /// The clusters that have a member, by identity.
    pub(crate) identities: Arc<Identities>,
    /// The clusters that have joined and not left yet, by name.
    pub(crate) members: Mutex<BTreeMap<Arc<str>, Joined>>,
}

/// A cluster in the fleet.
pub(crate) struct Joined {
    /// The member; `None` until its reconcilers are registered.
    pub(crate) member: Option<Member>,
    /// Its state.
    pub(crate) state: State,
}

impl Fleet {
    /// Adds a cluster, which joins immediately if the fleet runs, or with the next run.
    ///
    /// # Errors
    ///
    /// If the name is empty or taken.
    pub fn add(&self, name: &str, client: Client) -> Result<(), FleetError> {
        if name.is_empty() {
            return Err(FleetError::NoName);
        }
        let name: Arc<str> = name.into();
        if self.0.wanted.add(&name, client) {
            return Ok(());
        }
        Err(FleetError::NameTaken { name })
    }

    /// Removes a cluster that was [added](Self::add); returns whether it existed.
    ///
    /// The cluster leaves in the background, and [`get`](Self::get) does not return it any more. Clusters of a source
    /// are not removed; they leave when the source no longer contains them.
    #[allow(
        clippy::must_use_candidate,
        reason = "the cluster leaves whether or not the caller asks if it was there"
    )]
    pub fn remove(&self, name: &str) -> bool {
        self.0.wanted.remove(SourceId::CODE, name)
    }

    /// Returns the member of a cluster.
    ///
    /// `None` if the cluster is unknown or leaving, or if its reconcilers are not registered yet because it cannot be
    /// connected to.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Member> {
        // A cluster that was removed may still be in `members` while it leaves.
        if !self.0.wanted.contains(name) {
            return None;
        }
        self.0.members.lock().get(name)?.member.clone()
    }

    /// Returns all members whose reconcilers are registered, by name.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        let members = self.0.members.lock();
        let all = members.values().filter_map(|joined| joined.member.clone());
        all.filter(|member| self.0.wanted.contains(member.name()))
            .collect()
    }

    /// Returns the state of each cluster, by name.
    ///
    /// ```no_run
    /// use lariat::fleet::Fleet;
    ///
    /// fn report(fleet: &Fleet) {
    ///     for cluster in fleet.status() {
    ///         println!("{cluster}");
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn status(&self) -> Vec<MemberStatus> {
        let members = self.0.members.lock();
        let states = members.iter();
        states
            .map(|(name, joined)| joined.state.status(name))
            .collect()
    }

    /// Enqueues a key of a kind in its cluster.
    ///
    /// # Errors
    ///
    /// [`FleetError::Unknown`] if the cluster is not in the fleet, [`FleetError::Enqueue`] if the request names a
    /// handler that does not exist.
    ///
    /// # Panics
    ///
    /// If it is called outside of a tokio runtime and the kind has not been used before.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lariat::fleet::{ClusterKey, Fleet, FleetError};
    /// use lariat::{Enqueue, Gvk, ObjectKey};
    ///
    /// # fn example(fleet: &Fleet) -> Result<(), FleetError> {
    /// let key = ClusterKey::new("eu-1", ObjectKey::namespaced("shop", "web-0"));
    /// fleet.enqueue(Gvk::new("", "v1", "Pod"), &key, &Enqueue::now())
    /// # }
    /// ```
    pub fn enqueue(
        &self,
        kind: impl Into<Gvk>,
        key: &ClusterKey,
        request: &Enqueue,
    ) -> Result<(), FleetError> {
        let member = self.get(key.cluster()).ok_or_else(|| FleetError::Unknown {
            name: Arc::clone(key.cluster()),
        })?;
        let controller = member.operator().factory().for_kind(kind);
        Ok(controller.enqueue_with(key.key(), request)?)
    }

    /// Returns a handle that does not keep the fleet alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakFleet {
        WeakFleet(Arc::downgrade(&self.0))
    }
}

impl WeakFleet {
    /// Returns the fleet; `None` if it was dropped.
    #[must_use]
    pub fn upgrade(&self) -> Option<Fleet> {
        self.0.upgrade().map(Fleet)
    }
}

impl Member {
    /// Creates a member.
    pub(crate) fn new(name: Arc<str>, operator: Operator, fleet: WeakFleet) -> Self {
        Self {
            name,
            operator,
            fleet,
        }
    }

    /// Returns the name of the cluster.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the operator in the cluster.
    ///
    /// It takes only kinds of its own factory. Registering a reconciler with a controller of another cluster is an
    /// error.
    #[must_use]
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Returns the fleet, so that a reconciler can reach other clusters.
    #[must_use]
    pub fn fleet(&self) -> &WeakFleet {
        &self.fleet
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet")
            .field("name", &self.0.name)
            .field("members", &self.0.members.lock().len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for WeakFleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakFleet")
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
