//! Two replicas of a new project's operator, of which one is killed while objects change.
//!
//! Both have one account and one field manager, so the server does not say which process sent a write. What the test
//! sees: every state of the objects, of their Deployments and of the Lease, in the order of the resource versions, and
//! where among them the kill is and the moment the other replica had the Lease. So it sees writes between these two,
//! which no process may send, except for one of each worker that was in flight; writes that put an older image or
//! status back; and states that are written twice. It does not see who sent a write after the Lease has passed on, nor
//! an apply that changes nothing, which gives an object no new version.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
    WatchEvent, WatchParams,
};
use lariat_integration::{Env, eventually, in_namespace};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Folder;

const OBJECTS: usize = 500;

/// How many objects the leader has handled of the first change when it is killed.
const HANDLED: usize = 100;

/// How many calls the operator has under way at a time.
const WORKERS: usize = 2;

/// A state of an object.
struct ObjectState {
    version: u64,
    at: Instant,
    object: DynamicObject,
}

/// Every state of the objects of a kind, in the order of the resource versions.
struct Record {
    states: watch::Receiver<Vec<ObjectState>>,
    _watch: JoinSet<()>,
}

/// What was written of an object, with the resource version.
type Writes<T> = BTreeMap<String, Vec<(u64, T)>>;

impl Record {
    async fn start(api: Api<DynamicObject>) -> Result<Self> {
        let list = api.list(&ListParams::default()).await?;
        let version = list.metadata.resource_version.context("a list has one")?;
        let (sender, states) = watch::channel(Vec::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(record(api, version, sender));
        Ok(Self {
            states,
            _watch: tasks,
        })
    }

    /// Returns each value that was written of the objects, which repeats none.
    fn writes<T: PartialEq>(&self, value: impl Fn(&DynamicObject) -> T) -> Writes<T> {
        let mut writes = Writes::new();
        for ObjectState {
            version, object, ..
        } in &*self.states.borrow()
        {
            let name = object.metadata.name.clone().unwrap_or_default();
            let (written, value) = (writes.entry(name).or_default(), value(object));
            let is_news = |(_, last): &(u64, T)| *last != value;
            if written.last().is_none_or(is_news) {
                written.push((*version, value));
            }
        }
        writes
    }

    /// Waits until so many objects have a value now.
    async fn wait_for<T: PartialEq + Debug>(
        &self,
        count: usize,
        wanted: &T,
        value: impl Fn(&DynamicObject) -> T,
    ) {
        eventually(async || {
            let writes = self.writes(&value);
            let last = writes.values().filter_map(|written| written.last());
            let found = last.filter(|(_, last)| last == wanted).count();
            ensure!(found >= count, "{found} of {count} have {wanted:?}");
            Ok(())
        })
        .await;
    }
}

async fn record(
    api: Api<DynamicObject>,
    mut version: String,
    states: watch::Sender<Vec<ObjectState>>,
) {
    loop {
        let opened = api.watch(&WatchParams::default(), &version).await;
        let mut events = opened.expect("the watch opens").boxed();
        while let Some(event) = events.try_next().await.expect("the watch goes on") {
            let object = match event {
                WatchEvent::Added(it) | WatchEvent::Modified(it) => it,
                WatchEvent::Deleted(it) => panic!("{:?} is deleted", it.metadata.name),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => panic!("states were missed: {status:?}"),
            };
            version = object
                .metadata
                .resource_version
                .clone()
                .expect("it has one");
            let state = ObjectState {
                version: version.parse().expect("a number"),
                at: Instant::now(),
                object,
            };
            states.send_modify(|states| states.push(state));
        }
    }
}

/// The image of a Shop, which says how often it was changed.
fn image(changes: usize) -> String {
    format!("example:{changes}")
}

fn shop_image(shop: &DynamicObject) -> Option<String> {
    let image = shop.data.pointer("/spec/image").and_then(Value::as_str);
    image.map(str::to_owned)
}

fn deployment_image(deployment: &DynamicObject) -> Option<String> {
    let path = "/spec/template/spec/containers/0/image";
    let image = deployment.data.pointer(path).and_then(Value::as_str);
    image.map(str::to_owned)
}

/// Returns the generation that a Shop's status is about, if it says that all went well.
fn synced(shop: &DynamicObject) -> Option<i64> {
    let conditions = shop.data.pointer("/status/conditions")?.as_array()?;
    let mut conditions = conditions.iter();
    let synced = conditions.find(|it| it["type"] == "Synced" && it["status"] == "True")?;
    synced["observedGeneration"].as_i64()
}

fn holder(lease: &DynamicObject) -> Option<String> {
    let identity = lease.data.pointer("/spec/holderIdentity")?.as_str()?;
    let (pod, _) = identity.split_once('_')?;
    Some(pod.to_owned())
}

/// The cluster, and what happens on it.
struct Shops<'a> {
    env: &'a Env,
    api: Api<DynamicObject>,
    shops: Record,
    deployments: Record,
    leases: Record,
}

impl<'a> Shops<'a> {
    /// Waits until the operator has defined its kind, and begins to look.
    async fn look(env: &'a Env, leases: Record) -> Result<Self> {
        let api = api(env, "example.com/v1alpha1", "Shop");
        eventually(async || Ok(api.list(&ListParams::default()).await?)).await;
        Ok(Self {
            env,
            shops: Record::start(api.clone()).await?,
            deployments: Record::start(self::api(env, "apps/v1", "Deployment")).await?,
            leases,
            api,
        })
    }

    async fn create(&self) -> Result<()> {
        for_each(async |name| {
            // No pods: a real cluster has a while to do with 500 of them.
            let shop = json!({
                "apiVersion": "example.com/v1alpha1", "kind": "Shop", "metadata": {"name": name},
                "spec": {"image": image(0), "replicas": 0},
            });
            let shop = serde_json::from_value(shop)?;
            self.api.create(&PostParams::default(), &shop).await?;
            Ok(())
        })
        .await
    }

    async fn change(&self, changes: usize) -> Result<()> {
        for_each(async |name| {
            let patch = Patch::Merge(json!({"spec": {"image": image(changes)}}));
            let params = PatchParams::default();
            self.api.patch(&name, &params, &patch).await?;
            Ok(())
        })
        .await
    }

    /// Returns the resource version of this moment.
    async fn now(&self) -> Result<u64> {
        let mark = json!({"metadata": {"name": "mark"}});
        let mark: ConfigMap = serde_json::from_value(mark)?;
        let maps = self.env.api::<ConfigMap>();
        let mark = maps.create(&PostParams::default(), &mark).await?;
        Ok(mark
            .metadata
            .resource_version
            .context("it has one")?
            .parse()?)
    }

    /// Returns when a replica acquired the Lease.
    fn acquired(&self, replica: &str) -> Option<(u64, Instant)> {
        let states = self.leases.states.borrow();
        let mut states = states.iter();
        let state = states.find(|it| holder(&it.object).as_deref() == Some(replica))?;
        Some((state.version, state.at))
    }

    /// Checks what was written when, given the resource versions of the kill and of the take-over.
    fn check(&self, killed: u64, acquired: u64) -> Result<()> {
        let (mut before, mut between) = (0, 0);
        let mut count = |version: u64| {
            before += usize::from(version <= killed);
            between += usize::from(killed < version && version < acquired);
        };
        let wanted = self.shops.writes(shop_image);
        let statuses = self.shops.writes(|shop| shop.data.get("status").cloned());
        let about = self.shops.writes(synced);
        ensure!(about.len() == OBJECTS, "{} objects", about.len());
        for (name, synced) in &about {
            // A state that is written again, or put back, is one too many.
            let is_rising = synced.windows(2).all(|pair| pair[0].1 < pair[1].1);
            ensure!(is_rising, "{name}: {synced:?}");
            let of_last = statuses[name]
                .iter()
                .filter(|(version, _)| *version >= synced[synced.len() - 1].0);
            ensure!(of_last.count() == 1, "{name}: {:?}", statuses[name]);
            synced
                .iter()
                .skip(1)
                .for_each(|(version, _)| count(*version));
        }
        let images = self.deployments.writes(deployment_image);
        ensure!(images.len() == OBJECTS, "{} Deployments", images.len());
        let generations = self.deployments.writes(|it| it.metadata.generation);
        for (name, images) in &images {
            let is_rising = images.windows(2).all(|pair| pair[0].1 < pair[1].1);
            ensure!(is_rising, "{name}: {images:?}");
            // The server counts the writes that change a spec.
            let generation = generations[name].last().and_then(|(_, last)| *last);
            let written = i64::try_from(images.len()).ok();
            ensure!(generation == written, "{name}: {generation:?} {images:?}");
            let known = wanted[name]
                .iter()
                .rfind(|(version, _)| *version < acquired);
            let known = known.and_then(|(_, image)| image.clone());
            let stale = images
                .iter()
                .find(|(version, image)| *version > acquired && *image < known);
            ensure!(stale.is_none(), "{name} was {known:?}: {images:?}");
            images.iter().for_each(|(version, _)| count(*version));
        }
        println!("{before} writes before the kill, {between} between it and the take-over");
        ensure!(
            between <= WORKERS,
            "{between} writes while there was no leader"
        );
        Ok(())
    }
}

fn api(env: &Env, api_version: &str, kind: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').expect("a group");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(env.client.clone(), &env.namespace, &resource)
}

/// Does something with each object, some at a time.
async fn for_each(each: impl AsyncFn(String) -> Result<()>) -> Result<()> {
    let names = (0..OBJECTS).map(|number| Ok(format!("shop-{number}")));
    let each = &each;
    let all = stream::iter(names).try_for_each_concurrent(8, move |name| each(name));
    all.await
}

/// Starts a replica; it is killed when it is dropped.
fn start(env: &Env, program: &Path, folder: &Folder, name: &str) -> Result<Child> {
    // The Lease is in the namespace of the kubeconfig.
    let mut kubeconfig = env.kubeconfig()?;
    for context in &mut kubeconfig.contexts {
        if let Some(context) = &mut context.context {
            context.namespace = Some(env.namespace.clone());
        }
    }
    let path = folder.0.join("kubeconfig");
    std::fs::write(&path, serde_json::to_string(&kubeconfig)?)?;
    let mut command = Command::new(program);
    command
        .env("KUBECONFIG", path)
        .env("POD_NAME", name)
        .env("RUST_LOG", "error")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command.spawn().context("the operator does not start")
}

/// Kills one of two replicas while objects change, and checks what was written.
pub(crate) async fn one_is_killed(program: &Path, folder: &Folder) {
    in_namespace("scaffold", async |env| {
        env.takes_away("shops.example.com");
        let leases = Record::start(api(env, "coordination.k8s.io/v1", "Lease")).await?;
        let mut red = start(env, program, folder, "red")?;
        leases.wait_for(1, &Some("red".to_owned()), holder).await;
        let _green = start(env, program, folder, "green")?;
        let shops = Shops::look(env, leases).await?;
        shops.create().await?;
        shops.shops.wait_for(OBJECTS, &Some(1), synced).await;

        let kill = async {
            shops.shops.wait_for(HANDLED, &Some(2), synced).await;
            red.start_kill()?;
            let at = Instant::now();
            red.wait().await?;
            anyhow::Ok((shops.now().await?, at))
        };
        let (changed, killed) = tokio::join!(shops.change(1), kill);
        changed?;
        let (killed, at) = killed?;
        shops.change(2).await?;
        shops.shops.wait_for(OBJECTS, &Some(3), synced).await;
        let last = Some(image(2));
        let deployments = &shops.deployments;
        deployments.wait_for(OBJECTS, &last, deployment_image).await;

        let (acquired, since) = shops.acquired("green").context("it has the lease")?;
        println!("take-over after kill -9: {:.2?}", since - at);
        let holders = shops.leases.writes(holder);
        let holders = holders["shop-operator"].iter().map(|(_, it)| it.as_deref());
        let expected = [Some("red"), Some("green")];
        ensure!(holders.eq(expected), "the lease passes on once");
        let at_kill = shops.shops.writes(synced);
        let is_done = |written: &&Vec<(u64, Option<i64>)>| {
            written
                .iter()
                .any(|(version, about)| *version <= killed && *about == Some(2))
        };
        let done = at_kill.values().filter(is_done).count();
        println!("killed when it had handled {done} of {OBJECTS} changes");
        ensure!((HANDLED..OBJECTS).contains(&done), "killed in the middle");
        shops.check(killed, acquired)
    })
    .await;
}
