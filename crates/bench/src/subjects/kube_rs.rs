//! kube-rs: a `Controller` for each handler, controllers that share a stream, or a reflector alone.

use std::convert::Infallible;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use futures::future::{Ready, ready};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::{NamespaceResourceScope, PartialObjectMeta};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::{self, ObjectRef, Store, store::Writer};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{WatchStreamExt, reflector as reflect};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::job::{Job, Live, Reader};
use super::tally::Tally;
use crate::pods::stamp;
use crate::target::Target;

/// How many objects the channel of shared streams holds: what its documentation suggests for many.
const SHARED_BUFFER: usize = 1024;

/// What kube-rs asks of an object.
pub(crate) trait Object:
    Resource<DynamicType: Clone + Eq + Hash + Debug + Unpin + Send + Sync>
    + Clone
    + DeserializeOwned
    + Debug
    + Send
    + Sync
    + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType: Clone + Eq + Hash + Debug + Unpin + Send + Sync>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + Sync
        + 'static
{
}

/// Where a subject reads its objects, and what its handlers look at.
struct Pods<K: Object> {
    api: Api<K>,
    kind: K::DynamicType,
    config: watcher::Config,
    state: fn(&K) -> u64,
}

pub(crate) async fn client(target: &Target) -> Result<Client> {
    Ok(Client::try_from(target.config().await?)?)
}

fn config(subject: &str) -> watcher::Config {
    match subject {
        "kube-rs-streaming" => watcher::Config::default().streaming_lists(),
        _ => watcher::Config::default(),
    }
}

/// Starts a controller with a watch and a store of its own for each handler.
pub(super) async fn controllers(job: &Job<'_>) -> Result<Live> {
    let client = client(job.target).await?;
    let mut tasks = JoinSet::new();
    let mut reader = None;
    for handler in 0..job.tally.handlers() {
        let as_typed = job.case == "typed" || (job.case == "mixed" && handler % 2 == 0);
        let read = match job.case {
            "metadata" => controller(metadata(&client, job), handler, &job.tally, &mut tasks),
            _ if as_typed => controller(typed(&client, job), handler, &job.tally, &mut tasks),
            _ => controller(dynamic(&client, job), handler, &job.tally, &mut tasks),
        };
        // Each controller has a store with all objects, so the first is enough to read from.
        reader.get_or_insert(read);
    }
    Ok(Live {
        bytes: None,
        reader: reader.context("there is a handler")?,
        _at_work: Box::new(tasks),
    })
}

fn metadata(client: &Client, job: &Job<'_>) -> Pods<PartialObjectMeta<Pod>> {
    Pods {
        api: api(client, job.target),
        kind: (),
        config: config(job.subject),
        state: state(job),
    }
}

fn typed(client: &Client, job: &Job<'_>) -> Pods<Pod> {
    Pods {
        api: api(client, job.target),
        kind: (),
        config: config(job.subject),
        state: state(job),
    }
}

fn dynamic(client: &Client, job: &Job<'_>) -> Pods<DynamicObject> {
    let kind = ApiResource::erase::<Pod>(&());
    let api = match &job.target.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    Pods {
        api,
        kind,
        config: config(job.subject),
        state: state(job),
    }
}

/// Returns the objects of a kind that a run is about.
pub(crate) fn api<K>(client: &Client, target: &Target) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match &target.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Returns what handlers look at.
fn state<K: Resource>(job: &Job<'_>) -> fn(&K) -> u64 {
    if job.is_stamped {
        |object| stamp::read(object.meta())
    } else {
        version
    }
}

type MakeReader = Box<dyn Fn() -> Reader>;

fn controller<K: Object>(
    pods: Pods<K>,
    handler: usize,
    tally: &Arc<Tally>,
    tasks: &mut JoinSet<()>,
) -> MakeReader {
    let controller = Controller::new_with(pods.api, pods.config, pods.kind.clone());
    let store = controller.store();
    run(controller, handler, pods.state, tally, tasks);
    Box::new(move || reader(&store, &pods.kind))
}

/// Runs a controller whose reconciler notes what it saw.
fn run<K: Object>(
    controller: Controller<K>,
    handler: usize,
    state: fn(&K) -> u64,
    tally: &Arc<Tally>,
    tasks: &mut JoinSet<()>,
) {
    let reconcile = move |object: Arc<K>, tally: Arc<Tally>| -> Ready<Result<Action, Infallible>> {
        saw(&tally, handler, &*object, state);
        ready(Ok(Action::await_change()))
    };
    // The reconciler does not fail, but a controller needs an error policy.
    let never = |_: Arc<K>, _: &Infallible, _: Arc<Tally>| Action::requeue(Duration::from_secs(1));
    let outcomes = controller.run(reconcile, never, Arc::clone(tally));
    tasks.spawn(outcomes.for_each(|_| ready(())));
}

fn saw<K: Resource>(tally: &Tally, handler: usize, object: &K, state: fn(&K) -> u64) {
    let metadata = object.meta();
    let name = metadata.name.as_deref().unwrap_or_default();
    tally.saw(handler, metadata.namespace.as_deref(), name, state(object));
}

fn version<K: Resource>(object: &K) -> u64 {
    let version = object.meta().resource_version.as_deref();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

/// Starts controllers on one shared watch, an unstable feature of kube-rs.
pub(super) async fn shared(job: &Job<'_>) -> Result<Live> {
    let client = client(job.target).await?;
    match job.case {
        "metadata" => Ok(sharing(metadata(&client, job), &job.tally)),
        "typed" => Ok(sharing(typed(&client, job), &job.tally)),
        _ => bail!("a shared stream has one type, and no dynamic one"),
    }
}

fn sharing<K: Object + Resource<DynamicType = ()>>(pods: Pods<K>, tally: &Arc<Tally>) -> Live {
    let mut tasks = JoinSet::new();
    let writer = Writer::<K>::new_shared(SHARED_BUFFER, ());
    let store = writer.as_reader();
    for handler in 0..tally.handlers() {
        // All subscribe before the watch begins, as a later one would miss the objects before it.
        let subscriber = writer.subscribe().expect("the writer is a shared one");
        let controller = Controller::for_shared_stream(subscriber, store.clone());
        run(controller, handler, pods.state, tally, &mut tasks);
    }
    // Without the backoff, kube-rs retries a failing watch without a pause.
    let events = reflect(writer, watcher(pods.api, pods.config)).default_backoff();
    tasks.spawn(events.for_each(|_| ready(())));
    Live {
        bytes: None,
        reader: Box::new(move || reader(&store, &())),
        _at_work: Box::new(tasks),
    }
}

/// Starts a reflector without a controller.
pub(super) async fn reflector(job: &Job<'_>) -> Result<Live> {
    let client = client(job.target).await?;
    match job.case {
        "metadata" => Ok(reflecting(metadata(&client, job), &job.tally)),
        "typed" => Ok(reflecting(typed(&client, job), &job.tally)),
        "dynamic" => Ok(reflecting(dynamic(&client, job), &job.tally)),
        _ => bail!("a reflector has one type"),
    }
}

fn reflecting<K: Object>(pods: Pods<K>, tally: &Arc<Tally>) -> Live {
    let mut tasks = JoinSet::new();
    let writer = Writer::<K>::new(pods.kind.clone());
    let store = writer.as_reader();
    let events = reflect(writer, watcher(pods.api, pods.config)).default_backoff();
    let tally = Arc::clone(tally);
    tasks.spawn(events.applied_objects().for_each(move |object| {
        if let Ok(object) = object {
            saw(&tally, 0, &object, pods.state);
        }
        ready(())
    }));
    Live {
        bytes: None,
        reader: Box::new(move || reader(&store, &pods.kind)),
        _at_work: Box::new(tasks),
    }
}

fn reader<K: Object>(store: &Store<K>, kind: &K::DynamicType) -> Reader {
    let refs: Vec<ObjectRef<K>> = store
        .state()
        .into_iter()
        .map(|object| reflector_ref(&*object, kind))
        .collect();
    let mut endless = refs.into_iter().cycle();
    let (getting, listing) = (store.clone(), store.clone());
    Reader {
        get: Box::new(move || {
            let next = endless.next();
            drop(next.map(|next| getting.get(&next)));
        }),
        list: Box::new(move || drop(listing.state())),
    }
}

fn reflector_ref<K: Object>(object: &K, kind: &K::DynamicType) -> ObjectRef<K> {
    reflector::ObjectRef::from_obj_with(object, kind.clone())
}
