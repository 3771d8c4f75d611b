//! The program of a walk: one kind with a handler, and a relation that reads the content of another.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use lariat_cache::{
    Informer, InitialList, KindOptions, Metadata, Source, SourceBody, SourceError, SourceRequest,
    Storage, View,
};
use lariat_cluster::Cluster;
use lariat_controller::{
    Context, ControllerOptions, HandlerError, HandlerOptions, HandlerResult, Outcome, Relation,
    SharedControllerFactory,
};
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::ServiceExt;

use crate::faults::PROGRAM;
use crate::objects::{config_maps, key_of, secrets, version_of};

/// The writes of handlers in a walk; without a bound they would never rest.
const WRITES: u32 = 40;

/// The options that all factories of a walk have in common.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) storage: Storage,
    pub(crate) budget: Option<usize>,
    pub(crate) list: InitialList,
    pub(crate) reads_metadata: bool,
    /// The folder of a warm restart.
    pub(crate) warm: Option<PathBuf>,
    pub(crate) is_fair: bool,
    pub(crate) concurrency: Option<usize>,
    /// Whether the kind is read from a source of the caller.
    pub(crate) has_source: bool,
    /// Whether a relation reads the content of Secrets.
    pub(crate) relates: bool,
}

impl Options {
    pub(crate) fn any(random: &mut fastrand::Rng, seed: u64) -> Self {
        let storages = [
            Storage::Auto,
            Storage::Plain,
            Storage::Compressed,
            Storage::Decoded,
            Storage::OnDemand,
        ];
        let folder = format!("lariat-walk-{}-{seed}", std::process::id());
        Self {
            storage: storages[random.usize(..storages.len())],
            budget: (random.u8(..3) == 0).then(|| random.usize(..20_000)),
            list: [InitialList::List, InitialList::WatchList][random.usize(..2)],
            reads_metadata: random.u8(..4) == 0,
            warm: random.bool().then(|| std::env::temp_dir().join(folder)),
            is_fair: random.bool(),
            concurrency: (random.u8(..3) == 0).then_some(1),
            has_source: random.u8(..5) == 0,
            relates: random.bool(),
        }
    }

    fn of_kind(&self) -> ControllerOptions {
        let mut kind = KindOptions::default()
            .storage(self.storage)
            .initial_list(self.list);
        if let Some(budget) = self.budget {
            kind = kind.memory_budget(budget);
        }
        ControllerOptions::default()
            .cache(kind)
            .workers(3)
            .fair_namespaces(self.is_fair)
    }
}

/// The versions at which a handler has seen objects; none for those that did not exist.
pub(crate) type Seen = Arc<Mutex<BTreeMap<ObjectKey, Option<u64>>>>;

/// A factory with all that has seen its objects.
pub(crate) struct Program {
    pub(crate) factory: SharedControllerFactory,
    pub(crate) seen: Seen,
    /// The versions of Secrets whose content the relation has read.
    pub(crate) related: Arc<Mutex<BTreeMap<ObjectKey, u64>>>,
    /// A use of the kind: without one, its informer would end, and the next one be without the source.
    _source: Option<Informer>,
}

impl Program {
    pub(crate) fn new(cluster: &Cluster, options: &Options, seed: u64) -> Self {
        let client = client(cluster);
        let warm = options.warm.clone();
        let factory = SharedControllerFactory::builder(client.clone())
            .kind_options(config_maps(), options.of_kind())
            .kind_options(secrets(), options.of_kind())
            .caches(move |caches| match warm {
                Some(warm) => caches.warm_restart(warm),
                None => caches,
            })
            .grace_period(Duration::from_secs(20))
            .build();
        let source = options.has_source.then(|| {
            let source = Arc::new(Own(client));
            factory.caches().for_source(config_maps(), source)
        });
        let program = Self {
            factory,
            seen: Seen::default(),
            related: Arc::default(),
            _source: source,
        };
        let behaviour = Arc::new(Behaviour {
            seen: Arc::clone(&program.seen),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            writes: Mutex::new(0),
        });
        let handlers = match options.concurrency {
            Some(most) => HandlerOptions::default().concurrency(most),
            None => HandlerOptions::default(),
        };
        let controller = program.factory.for_object::<ConfigMap>();
        let registered = if options.reads_metadata {
            let handler = behaviour.handler::<Metadata>();
            controller
                .view::<Metadata>()
                .register_handler("h", handlers.handler(handler))
        } else {
            controller.register_handler("h", handlers.handler(behaviour.handler::<ConfigMap>()))
        };
        drop(registered.expect("no other handler has the name"));
        if options.relates {
            program.relate();
        }
        program
    }

    fn relate(&self) {
        let related = Arc::clone(&self.related);
        let relation = Relation::map(move |secret: &Secret| {
            let (key, version) = (key_of(&secret.metadata), version_of(&secret.metadata));
            related.lock().insert(key, version);
            let of = secret.data.as_ref().and_then(|data| data.get("of"));
            let of = of.map(|name| String::from_utf8_lossy(&name.0).into_owned());
            of.map(|name| ObjectKey::namespaced("default", &name))
                .into_iter()
                .collect()
        });
        let secrets = self.factory.for_object::<Secret>();
        self.factory
            .for_object::<ConfigMap>()
            .watch_related(&secrets, relation);
    }
}

/// Returns a client whose requests faults can be for.
fn client(cluster: &Cluster) -> Client {
    let named = |mut request: Request<Body>| {
        request
            .headers_mut()
            .insert(USER_AGENT, HeaderValue::from_static(PROGRAM));
        request
    };
    Client::new(cluster.service().map_request(named), "default")
}

/// A source that reads ConfigMaps as the program's client does.
struct Own(Client);

impl Source for Own {
    fn get<'a>(
        &'a self,
        request: &'a SourceRequest,
    ) -> BoxFuture<'a, Result<Response<SourceBody>, SourceError>> {
        let namespace = request.namespace.as_ref();
        let namespace = namespace.map_or_else(String::new, |name| format!("namespaces/{name}/"));
        let path = format!("/api/v1/{namespace}configmaps?{}", request.query);
        Box::pin(async move {
            let answer = self.0.send(Request::get(path).body(Body::empty())?).await?;
            Ok(answer.map(|body| body.map_err(SourceError::from).boxed_unsync()))
        })
    }
}

/// What handlers of the program do.
struct Behaviour {
    seen: Seen,
    random: Mutex<fastrand::Rng>,
    writes: Mutex<u32>,
}

impl Behaviour {
    fn handler<K: View>(
        self: &Arc<Self>,
    ) -> impl Fn(Context<K>) -> BoxFuture<'static, HandlerResult> + Send + Sync + 'static {
        let behaviour = Arc::clone(self);
        move |cx| {
            let behaviour = Arc::clone(&behaviour);
            Box::pin(async move { behaviour.handle(&cx).await })
        }
    }

    async fn handle<K: View>(&self, cx: &Context<K>) -> HandlerResult {
        let now = cx
            .raw()
            .map(|object| object.version().number().unwrap_or(0));
        self.seen.lock().insert(cx.key().clone(), now);
        let (fails, waits, writes) = {
            let mut random = self.random.lock();
            (
                random.u8(..10) == 0,
                random.u64(..2000),
                random.u8(..20) == 0,
            )
        };
        if waits > 1000 {
            sleep(Duration::from_millis(waits)).await;
        }
        if writes && now.is_some() && self.may_write() {
            self.write(cx).await?;
        }
        if fails {
            return Err(HandlerError::from("random"));
        }
        Ok(Outcome::done())
    }

    fn may_write(&self) -> bool {
        let mut writes = self.writes.lock();
        *writes += 1;
        *writes <= WRITES
    }

    /// Writes the object in a task, as a handler does that writes several at once.
    async fn write<K: View>(&self, cx: &Context<K>) -> Result<(), HandlerError> {
        let namespace = cx.key().namespace().unwrap_or_default();
        let api: Api<ConfigMap> = Api::namespaced(cx.client(), namespace);
        let (name, value) = (
            cx.key().name().to_owned(),
            self.random.lock().u32(..).to_string(),
        );
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let patch = Patch::Merge(json!({"metadata": {"annotations": {"h": value}}}));
            api.patch(&name, &PatchParams::default(), &patch)
                .await
                .map(|it| it.name_any())
        });
        let written = tasks.join_next().await.expect("there is a task");
        drop(written.expect("a write does not panic")?);
        Ok(())
    }
}
