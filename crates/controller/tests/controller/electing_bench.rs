//! A replica of a program that elects a leader, for tests.

use http::{HeaderValue, Request};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;
use lariat_cluster::Cluster;
use lariat_controller::{FactoryBuilder, Outcome, RunError, SharedControllerFactory};
use lariat_lease::Lease;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::bench::{Calls, recorder};

/// A replica of a program that handles ConfigMaps.
pub(crate) struct Replica {
    pub(crate) factory: SharedControllerFactory,
    pub(crate) calls: Calls,
    pub(crate) stop: CancellationToken,
    pub(crate) run: JoinSet<Result<(), RunError>>,
}

impl Replica {
    pub(crate) fn start(cluster: &Cluster, name: &'static str) -> Self {
        Self::start_with(cluster, name, |builder| builder)
    }

    pub(crate) fn start_with(
        cluster: &Cluster,
        name: &'static str,
        options: impl FnOnce(FactoryBuilder) -> FactoryBuilder,
    ) -> Self {
        let factory = options(elected(cluster, name)).build();
        let (calls, handler) = recorder(|_| async { Ok(Outcome::done()) });
        let config_maps = factory.for_object::<ConfigMap>();
        config_maps
            .register_handler("log", handler)
            .expect("registered");
        let (running, stop) = (factory.clone(), CancellationToken::new());
        let stopped = stop.clone().cancelled_owned();
        let mut run = JoinSet::new();
        run.spawn(async move { running.run(2, stopped).await });
        Self {
            factory,
            calls,
            stop,
            run,
        }
    }

    pub(crate) fn leads(&self) -> bool {
        self.factory.leadership().expect("it takes part").leads()
    }

    pub(crate) async fn stop(&mut self) -> Result<(), RunError> {
        self.stop.cancel();
        self.ended().await
    }

    pub(crate) async fn ended(&mut self) -> Result<(), RunError> {
        ended(&mut self.run).await
    }
}

pub(crate) async fn ended(run: &mut JoinSet<Result<(), RunError>>) -> Result<(), RunError> {
    let ended = run.join_next().await.expect("it ends once");
    ended.expect("it does not panic")
}

pub(crate) fn elected(cluster: &Cluster, name: &'static str) -> FactoryBuilder {
    let agent = move |mut request: Request<Body>| {
        let headers = request.headers_mut();
        headers.insert("user-agent", HeaderValue::from_static(name));
        request
    };
    let client = Client::new(cluster.service().map_request(agent), "default");
    SharedControllerFactory::builder(client).leader_election(Lease::new("shop").identity(name))
}
