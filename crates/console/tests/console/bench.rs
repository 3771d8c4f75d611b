//! A cluster, a factory, and its console.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use lariat_cluster::{Cluster, ClusterBuilder};
use lariat_console::{Console, ConsoleServer, Serve};
use lariat_controller::{
    Context, HandlerResult, Outcome, SharedController, SharedControllerFactory,
};
use lariat_testing::http::Client;
use serde_json::json;
use tokio::time;

/// How long a test waits for something that has to happen.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) const MAPS: &str = "/api/v1/controllers/core~v1~ConfigMap";

pub(crate) struct Bench {
    pub(crate) cluster: Cluster,
    pub(crate) factory: SharedControllerFactory,
    pub(crate) maps: SharedController<ConfigMap>,
    pub(crate) server: ConsoleServer,
    pub(crate) client: Client,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(|console, _| console).await
    }

    pub(crate) async fn with(settings: impl FnOnce(Console, &Cluster) -> Console) -> Self {
        Self::on(|cluster| cluster, settings).await
    }

    pub(crate) async fn on(
        cluster: impl FnOnce(ClusterBuilder) -> ClusterBuilder,
        settings: impl FnOnce(Console, &Cluster) -> Console,
    ) -> Self {
        let cluster = cluster(Cluster::builder())
            .start()
            .await
            .expect("a cluster");
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        let console = settings(Console::on("127.0.0.1:0"), &cluster);
        let server = factory.serve(console).expect("a free port");
        Self {
            maps: factory.for_object(),
            client: Client::new(server.address()),
            cluster,
            factory,
            server,
        }
    }

    /// Registers a handler that does nothing.
    pub(crate) fn idle(&self, name: &str) {
        let handler = |_: Context<ConfigMap>| async { HandlerResult::Ok(Outcome::done()) };
        self.maps
            .register_handler(name, handler)
            .expect("registered");
    }

    pub(crate) async fn start(&self) {
        self.factory.start(2).await.expect("started");
    }

    pub(crate) async fn create(&self, name: &str) {
        let api = Api::<ConfigMap>::namespaced(self.cluster.client(), "default");
        let map = json!({"metadata": {"name": name}});
        let map = serde_json::from_value(map).expect("a ConfigMap");
        api.create(&PostParams::default(), &map)
            .await
            .expect("created");
    }
}

/// Waits until a function returns something.
#[track_caller]
pub(crate) fn until<T, F: Future<Output = Option<T>>>(
    mut look: impl FnMut() -> F,
) -> impl Future<Output = T> {
    let at = std::panic::Location::caller();
    async move {
        let found = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                time::sleep(Duration::from_millis(20)).await;
            }
        };
        let found = time::timeout(DEADLINE, found).await;
        found.unwrap_or_else(|_| panic!("it did not happen in time: {at}"))
    }
}
