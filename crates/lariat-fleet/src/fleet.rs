//! The fleet, and its members.

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
use crate::key::ClusterKey;
use crate::source::ClusterSource;
use crate::status::{MemberStatus, State};
use crate::wanted::{SourceId, WantedClusters};

/// An operator over a set of clusters; clones are the same fleet.
///
/// Each cluster has an operator of its own. When a cluster joins, its factory is built and the function that the fleet
/// was built with registers the reconcilers in it; then the operator is started. A cluster that cannot be started is
/// tried again, after a delay that grows from 1 second to 1 minute. When it leaves, its operator is stopped: the keys
/// that are due are processed first, within the grace period of its factory.
///
/// A cluster that becomes unreachable stays in the fleet. Its caches keep what they have, and its watches are opened
/// again once it answers.
#[derive(Clone)]
pub struct Fleet(pub(crate) Arc<FleetState>);

/// A fleet that may have been dropped; reconcilers keep it to reach other clusters.
#[derive(Clone)]
pub struct WeakFleet(Weak<FleetState>);

/// A cluster of a fleet, and the operator in it; clones are the same.
///
/// It belongs to one stay of the cluster in the fleet: after the cluster has left and come back, or has got other
/// credentials, there is a new member with a new operator.
///
/// A member keeps its operator's factory alive, so reconcilers should keep its [name](Self::name) and the
/// [fleet](Self::fleet), not the member.
#[derive(Clone)]
pub struct Member {
    name: Arc<str>,
    operator: Operator,
    fleet: WeakFleet,
}

/// Builds a fleet.
#[must_use = "a builder does nothing until it is built"]
pub struct FleetBuilder {
    name: String,
    setup: Box<Setup>,
    factory: Box<MakeFactory>,
    sources: Vec<ClusterSource>,
}

type Setup = dyn Fn(&Member) -> Result<(), SetupError> + Send + Sync;
type MakeFactory = dyn Fn(&str, Client) -> SharedControllerFactory + Send + Sync;

pub(crate) struct FleetState {
    /// The name of the operators.
    pub(crate) name: String,
    pub(crate) setup: Box<Setup>,
    pub(crate) factory: Box<MakeFactory>,
    pub(crate) wanted: Arc<WantedClusters>,
    pub(crate) sources: Vec<Arc<ClusterSource>>,
    pub(crate) is_running: AtomicBool,
    /// The clusters that were begun and have not left yet.
    pub(crate) members: Mutex<BTreeMap<Arc<str>, Joined>>,
}

/// A cluster that is in the fleet.
pub(crate) struct Joined {
    /// The member, once its reconcilers are registered.
    pub(crate) member: Option<Member>,
    pub(crate) state: State,
}

impl Fleet {
    /// Creates a builder.
    ///
    /// The name is that of the operator in each cluster; see [`Operator::new`](lariat_operator::Operator::new). `setup`
    /// is called for each cluster that joins, before anything is sent to it, and registers its reconcilers.
    pub fn builder<E: Into<SetupError>>(
        name: &str,
        setup: impl Fn(&Member) -> Result<(), E> + Send + Sync + 'static,
    ) -> FleetBuilder {
        FleetBuilder {
            name: name.to_owned(),
            setup: Box::new(move |member| setup(member).map_err(Into::into)),
            factory: Box::new(|_, client| SharedControllerFactory::builder(client).build()),
            sources: Vec::new(),
        }
    }

    /// Adds a cluster. If the fleet runs, it joins now, and otherwise at the next run.
    ///
    /// # Errors
    ///
    /// The name is empty or taken.
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

    /// Removes a cluster that was [added](Self::add); returns whether it was there.
    ///
    /// It leaves while this returns; [`get`](Self::get) does not return it any more. A cluster of a source leaves when
    /// the source does not name it any more.
    #[allow(
        clippy::must_use_candidate,
        reason = "the cluster leaves whether or not the caller asks if it was there"
    )]
    pub fn remove(&self, name: &str) -> bool {
        self.0.wanted.remove(SourceId::CODE, name)
    }

    /// Returns a cluster whose reconcilers are registered.
    ///
    /// `None` if it is unknown, cannot be connected to, or leaves.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Member> {
        if !self.0.wanted.contains(name) {
            return None;
        }
        self.0.members.lock().get(name)?.member.clone()
    }

    /// Returns the clusters whose reconcilers are registered, by name.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        let members = self.0.members.lock();
        let all = members.values().filter_map(|joined| joined.member.clone());
        all.filter(|member| self.0.wanted.contains(member.name()))
            .collect()
    }

    /// Returns the state of each cluster, by name.
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
    /// The cluster is not in the fleet, or its controller has no handler of the name in the request.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime, and this is the first use of the kind.
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

    /// Returns a handle that does not keep the fleet.
    #[must_use]
    pub fn downgrade(&self) -> WeakFleet {
        WeakFleet(Arc::downgrade(&self.0))
    }
}

impl WeakFleet {
    /// Returns the fleet, unless it was dropped.
    #[must_use]
    pub fn upgrade(&self) -> Option<Fleet> {
        self.0.upgrade().map(Fleet)
    }
}

impl Member {
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
    /// It takes kinds of its own factory only. A controller of another cluster is refused where a reconciler is
    /// registered.
    #[must_use]
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Returns the fleet, to reach other clusters from a reconciler.
    #[must_use]
    pub fn fleet(&self) -> &WeakFleet {
        &self.fleet
    }
}

impl FleetBuilder {
    /// Adds a source of clusters.
    pub fn source(mut self, source: ClusterSource) -> Self {
        self.sources.push(source);
        self
    }

    /// Sets how the factory of a cluster is built.
    ///
    /// By default it is built without options. The function is called with the name of the cluster and a client for it, whenever the cluster joins.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat_controller::SharedControllerFactory;
    /// use lariat_fleet::FleetBuilder;
    ///
    /// fn with_grace(builder: FleetBuilder) -> FleetBuilder {
    ///     builder.factory(|_cluster, client| {
    ///         SharedControllerFactory::builder(client).grace_period(Duration::from_secs(10)).build()
    ///     })
    /// }
    /// # let _ = with_grace;
    /// ```
    pub fn factory(
        mut self,
        make: impl Fn(&str, Client) -> SharedControllerFactory + Send + Sync + 'static,
    ) -> Self {
        self.factory = Box::new(make);
        self
    }

    /// Builds the fleet; nothing is read or sent.
    #[must_use]
    pub fn build(self) -> Fleet {
        Fleet(Arc::new(FleetState {
            name: self.name,
            setup: self.setup,
            factory: self.factory,
            wanted: Arc::default(),
            sources: self.sources.into_iter().map(Arc::new).collect(),
            is_running: AtomicBool::new(false),
            members: Mutex::default(),
        }))
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

impl fmt::Debug for FleetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetBuilder")
            .field("name", &self.name)
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
