//! A program whose controllers cause each other's runs, and its console.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Service};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_cluster::{Cluster, Load};
use lariat_console::{Console, ConsoleServer, Serve};
use lariat_controller::{Context, Enqueue, HandlerResult, Outcome, SharedControllerFactory};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tokio::time;

pub(crate) const NOT_FOUND: &str =
    "the image \"registry.example.com/shop/web:1.4.2\" is not found: manifest unknown";
pub(crate) const DEPLOYMENTS: &str = "#/controllers/apps~v1~Deployment";
/// The Deployment that fails while there is an error.
pub(crate) const WEB: &str = "#/controllers/apps~v1~Deployment/shop~web";

/// A ConfigMap is published as a Service, whose route rolls out a Deployment.
pub(crate) struct Shop {
    pub(crate) cluster: Cluster,
    pub(crate) factory: SharedControllerFactory,
    pub(crate) server: ConsoleServer,
    registry: Registry,
}

/// The state of the handler of Deployments.
#[derive(Clone, Default)]
struct Registry {
    error: Arc<Mutex<Option<&'static str>>>,
    asked: Arc<AtomicUsize>,
}

impl Shop {
    pub(crate) async fn new() -> Self {
        Self::with(|console| console).await
    }

    pub(crate) async fn with(settings: impl FnOnce(Console) -> Console) -> Self {
        Self::slow(Duration::ZERO, settings).await
    }

    /// Starts a shop whose handlers are slow for the objects of other teams.
    pub(crate) async fn slow(pace: Duration, settings: impl FnOnce(Console) -> Console) -> Self {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        let registry = Registry::default();
        register(&factory, &registry, pace);
        let console = Console::on("127.0.0.1:0")
            .name("shop-operator")
            .version("1.4.2");
        let server = factory.serve(settings(console)).expect("a free port");
        let shop = Self {
            cluster,
            factory,
            server,
            registry,
        };
        let namespace: Namespace = object(json!({"metadata": {"name": "shop"}}));
        create(Api::all(shop.client()), &namespace).await;
        shop.factory.start(4).await.expect("started");
        shop
    }

    /// The address of the page, with a view.
    pub(crate) fn url(&self, hash: &str) -> String {
        format!("http://{}/{hash}", self.server.address())
    }

    /// Creates the ConfigMap and the Deployment `shop/NAME`.
    pub(crate) async fn create(&self, name: &str) {
        let containers = json!([{"name": name, "image": name}]);
        let template =
            json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}});
        let spec = json!({"selector": {"matchLabels": {"app": name}}, "template": template});
        let deployment: Deployment = object(json!({"metadata": {"name": name}, "spec": spec}));
        create(self.api(), &deployment).await;
        let map: ConfigMap = object(json!({"metadata": {"name": name}, "data": {"version": "1"}}));
        create(self.api(), &map).await;
    }

    /// Changes the ConfigMap `shop/NAME`.
    pub(crate) async fn change(&self, name: &str, version: &str) {
        let patch = Patch::Merge(json!({"data": {"version": version}}));
        let maps: Api<ConfigMap> = self.api();
        let changed = maps.patch(name, &PatchParams::default(), &patch).await;
        changed.expect("changed");
    }

    /// Fills the cluster with some thousand objects of other teams.
    pub(crate) async fn fill(&self) {
        self.cluster.load(Load::pods(2000).config_maps(800)).await;
    }

    /// Makes the handler fail for the Deployment `shop/web`, or not.
    pub(crate) fn fail(&self, error: Option<&'static str>) {
        *self.registry.error.lock() = error;
    }

    /// How many times Deployments of the shop were rolled out.
    pub(crate) fn asked(&self) -> usize {
        self.registry.asked.load(Ordering::Relaxed)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), "shop")
    }

    fn client(&self) -> Client {
        self.cluster.client()
    }
}

fn register(factory: &SharedControllerFactory, registry: &Registry, pace: Duration) {
    let deployments = factory.for_object::<Deployment>();
    let registered = registry.clone();
    let roll_out = move |cx: Context<Deployment>| {
        let registry = registered.clone();
        async move {
            if is_ours(cx.key().namespace()) {
                return registry.roll_out(cx.key().name());
            }
            work(pace).await
        }
    };
    let registered = deployments.register_handler("roll-out", roll_out);
    registered.expect("a new name");

    let route = move |cx: Context<Service>| {
        let deployments = deployments.clone();
        async move {
            if is_ours(cx.key().namespace()) {
                deployments.enqueue_with(cx.key(), &Enqueue::now().because("its route changed"))?;
            }
            HandlerResult::Ok(Outcome::done())
        }
    };
    let services = factory.for_object::<Service>();
    services
        .register_handler("route", route)
        .expect("a new name");

    let publish = move |cx: Context<ConfigMap>| async move {
        // Each namespace has a ConfigMap with the certificate of the cluster.
        if is_ours(cx.key().namespace()) && cx.key().name() != "kube-root-ca.crt" {
            return publish(cx).await;
        }
        work(pace).await
    };
    let maps = factory.for_object::<ConfigMap>();
    maps.register_handler("publish", publish)
        .expect("a new name");

    let pods = factory.for_object::<Pod>();
    let inspect = move |_: Context<Pod>| work(pace);
    pods.register_handler("inspect", inspect)
        .expect("a new name");
}

impl Registry {
    fn roll_out(&self, name: &str) -> HandlerResult {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match *self.error.lock() {
            Some(error) if name == "web" => Err(error.into()),
            _ => Ok(Outcome::done()),
        }
    }
}

async fn publish(cx: Context<ConfigMap>) -> HandlerResult {
    let version = cx
        .object()?
        .and_then(|map| map.data.as_ref()?.get("version").cloned());
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": cx.key().name(), "annotations": {"version": version}},
        "spec": {"ports": [{"port": 80}]},
    });
    let services = Api::<Service>::namespaced(cx.client(), "shop");
    let (params, patch) = (PatchParams::apply("shop").force(), Patch::Apply(service));
    services.patch(cx.key().name(), &params, &patch).await?;
    Ok(Outcome::done())
}

/// Sleeps for a random time, up to twice the pace.
async fn work(pace: Duration) -> HandlerResult {
    if !pace.is_zero() {
        time::sleep(pace.mul_f64(2.0 * fastrand::f64())).await;
    }
    Ok(Outcome::done())
}

fn is_ours(namespace: Option<&str>) -> bool {
    namespace == Some("shop")
}

fn object<K: DeserializeOwned>(json: Json) -> K {
    serde_json::from_value(json).expect("an object")
}

async fn create<K>(api: Api<K>, object: &K)
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let created = api.create(&PostParams::default(), object).await;
    created.expect("created");
}
