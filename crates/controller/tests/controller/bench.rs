//! A cluster, a factory, and handlers that record their calls.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cluster::Cluster;
use lariat_controller::{
    Context, ControllerStatus, FactoryBuilder, Handler, HandlerOptions, HandlerResult, Outcome,
    SharedController, SharedControllerFactory,
};
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) struct Bench {
    pub(crate) cluster: Cluster,
    pub(crate) factory: SharedControllerFactory,
    pub(crate) config_maps: SharedController<ConfigMap>,
    pub(crate) api: Api<ConfigMap>,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(|builder| builder).await
    }

    pub(crate) async fn with(options: impl FnOnce(FactoryBuilder) -> FactoryBuilder) -> Self {
        let cluster = Cluster::builder()
            .start()
            .await
            .expect("a cluster without a socket starts");
        let factory = options(SharedControllerFactory::builder(cluster.client())).build();
        Self {
            config_maps: factory.for_object(),
            api: Api::namespaced(cluster.client(), "default"),
            factory,
            cluster,
        }
    }

    pub(crate) async fn start(&self) {
        self.factory.start(2).await.expect("started");
    }

    pub(crate) async fn create(&self, name: &str) {
        let object: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": name}})).expect("it is one");
        self.api
            .create(&PostParams::default(), &object)
            .await
            .expect("created");
    }

    /// Creates or changes a ConfigMap from JSON.
    pub(crate) async fn apply(&self, object: serde_json::Value) {
        let name = object["metadata"]["name"]
            .as_str()
            .expect("a name")
            .to_owned();
        match self.api.get_opt(&name).await.expect("read") {
            None => {
                let object: ConfigMap = serde_json::from_value(object).expect("it is one");
                drop(
                    self.api
                        .create(&PostParams::default(), &object)
                        .await
                        .expect("created"),
                );
            }
            Some(_) => {
                let (params, patch) = (PatchParams::default(), Patch::Merge(object));
                drop(
                    self.api
                        .patch(&name, &params, &patch)
                        .await
                        .expect("changed"),
                );
            }
        }
    }

    pub(crate) async fn change(&self, name: &str, value: &str) {
        let patch = Patch::Merge(json!({"data": {"value": value}}));
        self.api
            .patch(name, &PatchParams::default(), &patch)
            .await
            .expect("changed");
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.api
            .delete(name, &DeleteParams::default())
            .await
            .expect("deleted");
    }

    pub(crate) fn status(&self) -> ControllerStatus {
        self.config_maps.status().expect("the controller is in use")
    }

    /// Registers a handler of ConfigMaps that records its calls.
    pub(crate) fn record(&self, name: &str) -> Calls {
        self.on(name, |_| async { Ok(Outcome::done()) })
    }

    /// Registers a handler of ConfigMaps that records its calls, and then runs a function.
    pub(crate) fn on<F>(
        &self,
        name: &str,
        then: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> Calls
    where
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        self.on_with(name, HandlerOptions::default(), then)
    }

    /// Registers a handler of ConfigMaps with options that records its calls.
    pub(crate) fn record_with(&self, name: &str, options: HandlerOptions) -> Calls {
        self.on_with(name, options, |_| async { Ok(Outcome::done()) })
    }

    /// Registers a handler of ConfigMaps with options that writes down what it is called for, then does
    /// something.
    pub(crate) fn on_with<F>(
        &self,
        name: &str,
        options: HandlerOptions,
        then: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> Calls
    where
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        let (calls, handler) = recorder(then);
        self.config_maps
            .register_handler(name, options.handler(handler))
            .expect("registered");
        calls
    }
}

/// Creates a handler of ConfigMaps that records its calls, and then runs a function.
pub(crate) fn recorder<F>(
    then: impl Fn(Call) -> F + Send + Sync + 'static,
) -> (Calls, impl Handler<ConfigMap>)
where
    F: Future<Output = HandlerResult> + Send + 'static,
{
    let calls = Calls::default();
    let then = Arc::new(then);
    let recorder = calls.clone();
    let handler = move |cx: Context<ConfigMap>| {
        let (then, recorder) = (Arc::clone(&then), recorder.clone());
        async move {
            let call = Call::of(&cx)?;
            recorder.0.lock().push(call.clone());
            then(call).await
        }
    };
    (calls, handler)
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

/// One call of a handler.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The object's value: `-` for an object without a value, none without an object.
    pub(crate) value: Option<String>,
    /// The value of a deleted object.
    pub(crate) deleted: Option<String>,
    pub(crate) causes: String,
    pub(crate) attempt: u32,
    pub(crate) at: time::Instant,
}

impl Call {
    fn of(cx: &Context<ConfigMap>) -> Result<Self, lariat_controller::HandlerError> {
        let value = |object: Arc<ConfigMap>| {
            let data = object.data.as_ref().and_then(|data| data.get("value"));
            data.cloned().unwrap_or_else(|| "-".to_owned())
        };
        Ok(Self {
            name: cx.key().name().to_owned(),
            value: cx.object()?.map(value),
            deleted: cx.deleted()?.map(value),
            causes: cx.causes().to_string(),
            attempt: cx.attempt(),
            at: time::Instant::now(),
        })
    }
}

/// The calls of one handler, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<Call>>>);

impl Calls {
    pub(crate) fn all(&self) -> Vec<Call> {
        self.0.lock().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(crate) fn last(&self) -> Call {
        self.0.lock().last().cloned().expect("there was a call")
    }

    /// Returns the values, `-` for an object without one, `gone` for a deleted object, in the order of the calls.
    pub(crate) fn values(&self) -> Vec<String> {
        let calls = self.0.lock();
        let value = |call: &Call| call.value.clone().unwrap_or_else(|| "gone".to_owned());
        calls.iter().map(value).collect()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Returns the names, in the order of the calls.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().iter().map(|call| call.name.clone()).collect()
    }
}

/// Runs all tasks that are ready, without advancing the time.
pub(crate) async fn settle() {
    time::sleep(Duration::from_millis(1)).await;
}
