//! Configures and builds a fleet.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kube::Client;
use lariat_controller::SharedControllerFactory;
use parking_lot::Mutex;

use crate::error::SetupError;
use crate::fleet::{Fleet, FleetState, MakeFactory, Member, Setup};
use crate::source::ClusterSource;

/// Configures and builds a [`Fleet`].
#[must_use = "a builder does nothing until it is built"]
pub struct FleetBuilder {
    /// The name of the operators.
    name: String,
    /// Registers the reconcilers of a cluster.
    setup: Box<Setup>,
    /// Builds the factory of a cluster.
    factory: Box<MakeFactory>,
    /// The sources of clusters.
    sources: Vec<ClusterSource>,
    /// The factory whose lease the fleet needs.
    fenced_by: Option<SharedControllerFactory>,
}

impl Fleet {
    /// Creates a builder.
    ///
    /// `name` is the name of the operator in each cluster; see [`Operator::new`](lariat_operator::Operator::new).
    /// `setup` is called for each cluster that joins, once the cluster has answered a first request, and registers its
    /// reconcilers.
    pub fn builder<E: Into<SetupError>>(
        name: &str,
        setup: impl Fn(&Member) -> Result<(), E> + Send + Sync + 'static,
    ) -> FleetBuilder {
        FleetBuilder {
            name: name.to_owned(),
            setup: Box::new(move |member| setup(member).map_err(Into::into)),
            factory: Box::new(|_, client| SharedControllerFactory::builder(client).build()),
            sources: Vec::new(),
            fenced_by: None,
        }
    }
}

impl FleetBuilder {
    /// Adds a source of clusters (default: none).
    pub fn source(mut self, source: ClusterSource) -> Self {
        self.sources.push(source);
        self
    }

    /// Sets how the factory of a cluster is built (default: without options).
    ///
    /// The function is called whenever a cluster joins, with the name of the cluster and a client for it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::fleet::FleetBuilder;
    /// use lariat::SharedControllerFactory;
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

    /// Fences the fleet with the lease of a factory (default: none).
    ///
    /// A run waits until this process has the lease, so that one replica has the clusters. The clients of all clusters
    /// send writes only in that term, also if the lease is acquired again later, and the run ends when it is over. As
    /// with [`Leadership::fence`](lariat_lease::Leadership::fence), a write that has left when the lease is lost may
    /// still take effect. Secrets are read with the lease of their hub without this call.
    ///
    /// The program must start the factory. A run without a leader election is an error. If a source needs the lease of
    /// another factory, one process must have both: while two replicas have one each, neither runs the fleet.
    ///
    /// ```
    /// use lariat::fleet::{ClusterSource, FleetBuilder};
    /// use lariat::SharedControllerFactory;
    ///
    /// // `hub` is a factory with a `leader_election`.
    /// fn of_directory(builder: FleetBuilder, hub: &SharedControllerFactory) -> FleetBuilder {
    ///     builder.source(ClusterSource::directory("/etc/clusters")).fenced_by(hub)
    /// }
    /// # let _ = of_directory;
    /// ```
    pub fn fenced_by(mut self, factory: &SharedControllerFactory) -> Self {
        self.fenced_by = Some(factory.clone());
        self
    }

    /// Builds the fleet; no request is sent.
    #[must_use]
    pub fn build(self) -> Fleet {
        Fleet(Arc::new(FleetState {
            name: self.name,
            setup: self.setup,
            factory: self.factory,
            wanted: Arc::default(),
            sources: self.sources.into_iter().map(Arc::new).collect(),
            fenced_by: self.fenced_by,
            is_running: AtomicBool::new(false),
            identities: Arc::default(),
            members: Mutex::default(),
        }))
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
