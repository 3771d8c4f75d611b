//! A reconciler that applies the objects a test wants, and records the results.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::api::{Api, DynamicObject, PostParams};
use lariat_cache::KindOptions;
use lariat_cluster::Cluster;
use lariat_controller::{ControllerOptions, Outcome, SharedControllerFactory};
use lariat_operator::{Applied, Apply, ApplyError, Desired, Operator, Reconcile, SetPlan};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::bench::{Bench, Widget, hang_watches, settle};

type Setup = dyn Fn(Apply) -> Apply + Send + Sync;
type Call = Result<Applied, Arc<ApplyError>>;

/// The part of a rig that the reconciler shares.
#[derive(Clone)]
struct RigState {
    wanted: Arc<Mutex<Vec<Value>>>,
    /// What is wanted in place of `wanted`, with options.
    desired: Arc<Mutex<Option<Desired>>>,
    calls: Arc<Mutex<Vec<Call>>>,
    plans: Arc<Mutex<Option<Vec<SetPlan>>>>,
    setup: Arc<Mutex<Arc<Setup>>>,
    name: Arc<Mutex<String>>,
}

pub(crate) struct Rig {
    pub(crate) bench: Bench,
    /// The cache options of Widgets.
    cache: KindOptions,
    state: RigState,
}

impl Rig {
    /// Creates a rig whose reconciler watches what it applies: ConfigMaps, Secrets, Services and Deployments.
    pub(crate) async fn watching() -> Self {
        Self::caching(KindOptions::default()).await
    }

    /// As [`watching`](Self::watching), with other cache options of Widgets.
    pub(crate) async fn caching(widgets: KindOptions) -> Self {
        let bench = Bench::new().await.caching(widgets.clone());
        let mut rig = Self::new(bench);
        rig.cache = widgets;
        rig.register(&rig.bench.operator, &rig.bench.factory, true);
        rig.bench.start().await;
        rig
    }

    /// Creates a rig whose reconciler watches only its own kind.
    pub(crate) async fn blind() -> Self {
        let rig = Self::new(Bench::new().await);
        rig.register(&rig.bench.operator, &rig.bench.factory, false);
        rig.bench.start().await;
        rig
    }

    /// As [`watching`](Self::watching), but a watch sends nothing after its first second, so that its cache becomes
    /// stale.
    pub(crate) async fn falling_behind(plural: &str) -> Self {
        let rig = Self::new(Bench::new().await);
        hang_watches(&rig.bench, plural);
        rig.register(&rig.bench.operator, &rig.bench.factory, true);
        rig.bench.start().await;
        rig
    }

    fn new(bench: Bench) -> Self {
        let state = RigState {
            wanted: Arc::default(),
            desired: Arc::default(),
            calls: Arc::default(),
            plans: Arc::default(),
            setup: Arc::new(Mutex::new(Arc::new(|set| set))),
            name: Arc::new(Mutex::new("things".to_owned())),
        };
        let cache = KindOptions::default();
        Self {
            bench,
            cache,
            state,
        }
    }

    fn register(&self, operator: &Operator, factory: &SharedControllerFactory, watches: bool) {
        let kind = factory.for_object::<Widget>();
        let mut reconciler = operator.reconciler("applies", &kind);
        if watches {
            reconciler = reconciler
                .owns(&factory.for_object::<ConfigMap>())
                .owns(&factory.for_object::<Secret>())
                .owns(&factory.for_object::<Service>())
                .owns(&factory.for_object::<Deployment>());
        }
        let state = self.state.clone();
        let registered = reconciler.register(move |cx: Reconcile<Widget>| {
            let state = state.clone();
            async move {
                let (setup, name) = (state.setup.lock().clone(), state.name.lock().clone());
                let wanted = state.wanted.lock().clone();
                let desired = state.desired.lock().clone();
                let desired = desired.unwrap_or_else(|| {
                    wanted.into_iter().fold(Desired::new(), Desired::with_value)
                });
                let set = setup(cx.apply_set(&name));
                if state.plans.lock().is_some() {
                    let plan = set.plan(desired).await;
                    state.plans.lock().get_or_insert_default().push(plan);
                    return Ok(Outcome::done());
                }
                let result = set.apply(desired).await.map_err(Arc::new);
                state.calls.lock().push(result.clone());
                result?;
                Ok(Outcome::done())
            }
        });
        registered.expect("registered");
    }

    /// Continues with a new process: an operator and a factory without memory.
    pub(crate) async fn restart(&mut self, watches: bool) {
        self.bench.operator.stop().await.expect("stopped");
        let kind: lariat_core::Gvk = "demo.dev/v1/Widget".parse().expect("a kind");
        let options = ControllerOptions::default().cache(self.cache.clone());
        let factory = SharedControllerFactory::builder(self.bench.cluster.client())
            .kind_options(kind, options)
            .build();
        let operator = Operator::new("widgeteer", &factory);
        self.register(&operator, &factory, watches);
        self.bench.widgets = factory.for_object();
        self.bench.factory = factory;
        self.bench.operator = operator;
        self.bench.start().await;
        settle().await;
    }

    /// Sets the options of the set.
    pub(crate) fn setup(&self, setup: impl Fn(Apply) -> Apply + Send + Sync + 'static) {
        *self.state.setup.lock() = Arc::new(setup);
    }

    pub(crate) fn rename(&self, name: &str) {
        name.clone_into(&mut self.state.name.lock());
    }

    /// Sets what is wanted, without a call.
    pub(crate) fn want(&self, wanted: impl IntoIterator<Item = Value>) {
        *self.state.desired.lock() = None;
        *self.state.wanted.lock() = wanted.into_iter().collect();
    }

    /// Sets what is wanted, and calls the reconciler of the Widget until nothing is left to do.
    pub(crate) async fn apply(&self, wanted: impl IntoIterator<Item = Value>) {
        self.want(wanted);
        self.kick().await;
    }

    /// Sets what is wanted with options and steps, without a call.
    pub(crate) fn want_all(&self, desired: Desired) {
        *self.state.desired.lock() = Some(desired);
    }

    /// As [`apply`](Self::apply), with options and steps.
    pub(crate) async fn apply_all(&self, desired: Desired) {
        self.want_all(desired);
        self.kick().await;
    }

    /// As [`plan`](Self::plan), with options and steps.
    pub(crate) async fn plan_all(&self, desired: Desired) -> SetPlan {
        *self.state.plans.lock() = Some(Vec::new());
        self.apply_all(desired).await;
        let plans = self.state.plans.lock().take();
        plans.and_then(|mut plans| plans.pop()).expect("a plan")
    }

    pub(crate) async fn kick(&self) {
        self.bench.widgets.enqueue(&crate::bench::key("a"));
        settle().await;
    }

    /// Plans instead of applying.
    pub(crate) async fn plan(&self, wanted: impl IntoIterator<Item = Value>) -> SetPlan {
        *self.state.plans.lock() = Some(Vec::new());
        self.apply(wanted).await;
        let plans = self.state.plans.lock().take();
        plans.and_then(|mut plans| plans.pop()).expect("a plan")
    }

    /// Returns the calls since the last look, as text.
    pub(crate) fn calls(&self) -> Vec<String> {
        let calls = std::mem::take(&mut *self.state.calls.lock());
        let text = |call: &Call| match call {
            Ok(applied) => applied.to_string(),
            Err(error) => error.to_string(),
        };
        calls.iter().map(text).collect()
    }

    /// Returns the last call.
    pub(crate) fn last(&self) -> Call {
        let calls = std::mem::take(&mut *self.state.calls.lock());
        calls.into_iter().next_back().expect("a call")
    }

    /// Returns the last call, which failed, as text.
    pub(crate) fn failure(&self) -> String {
        self.last().expect_err("a failure").to_string()
    }

    /// Returns the number of writes of a resource.
    pub(crate) fn writes(&self, resource: &str) -> usize {
        let journal = self.bench.cluster.journal();
        let count = |verb| journal.count(verb, resource);
        count("patch") + count("create") + count("update") + count("delete")
    }

    /// Returns the record on the Widget: the key and the kinds.
    pub(crate) async fn noted(&self) -> Vec<(String, String)> {
        let widget = self.bench.get("a").await.expect("there");
        let annotations = widget.metadata.annotations.unwrap_or_default();
        let noted = annotations.into_iter();
        noted
            .filter(|(key, _)| key.starts_with("applied.lariat.dev/"))
            .collect()
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.bench.cluster
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.bench.cluster.client(), "default")
    }

    /// Returns an object of a core kind, as another client sees it.
    pub(crate) async fn config_map(&self, name: &str) -> Option<ConfigMap> {
        self.config_maps().get_opt(name).await.expect("read")
    }

    /// Creates an object as another client.
    pub(crate) async fn create(&self, object: Value) {
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let types = object.types.clone().expect("types");
        let gvk: lariat_core::Gvk = format!("{}/{}", types.api_version, types.kind)
            .parse()
            .expect("a kind");
        let clients = self.bench.factory.caches().clients().for_kind(&gvk);
        let resource = clients.resource().await.expect("served");
        let described = kube::core::ApiResource::from(&resource);
        let client = self.bench.cluster.client();
        let api: Api<DynamicObject> = match object.metadata.namespace.clone() {
            Some(namespace) => Api::namespaced_with(client, &namespace, &described),
            None => Api::all_with(client, &described),
        };
        let created = api.create(&PostParams::default(), &object).await;
        created.expect("created");
    }
}

/// Returns an object as another client writes it, with its namespace.
pub(crate) fn in_default(mut object: Value) -> Value {
    object["metadata"]["namespace"] = json!("default");
    object
}

/// Returns a ConfigMap with one value.
pub(crate) fn config(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

/// Returns a Service with a port.
pub(crate) fn service(name: &str, port: u16) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"ports": [{"port": port}], "selector": {"app": name}}})
}
