//! Factories, recorders and objects for the tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lariat_cache::{
    CachedObject, Change, Informer, InitialList, KindOptions, SharedCacheFactory, Subscriber,
};
use lariat_cluster::Cluster;
use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn config_maps() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

/// A body of any type, for services that answer themselves or pass answers on.
pub(crate) type AnyBody = http_body_util::combinators::UnsyncBoxBody<bytes::Bytes, tower::BoxError>;

pub(crate) fn any_body<B>(body: B) -> AnyBody
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    use http_body_util::BodyExt;
    body.map_err(Into::into).boxed_unsync()
}

pub(crate) async fn cluster() -> Cluster {
    Cluster::builder()
        .start()
        .await
        .expect("a cluster without a socket starts")
}

pub(crate) fn factory(client: Client) -> SharedCacheFactory {
    SharedCacheFactory::new(client)
}

/// A factory whose caches are filled by lists.
pub(crate) fn listing(client: Client) -> SharedCacheFactory {
    SharedCacheFactory::builder(client)
        .default_options(KindOptions::default().initial_list(InitialList::List))
        .build()
}

/// A client that reaches nothing, for informers with a source of their own.
pub(crate) fn no_client() -> Client {
    let nowhere = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
    Client::try_from(nowhere).expect("a client without TLS can be made")
}

/// A client with a user agent.
pub(crate) fn client_as(cluster: &Cluster, user_agent: &'static str) -> Client {
    use tower_service::Service;
    let service = cluster.service();
    let named = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
        let name = http::HeaderValue::from_static(user_agent);
        request.headers_mut().insert(http::header::USER_AGENT, name);
        service.clone().call(request)
    });
    Client::new(named, "default")
}

/// Writes ConfigMaps in namespace `default`.
pub(crate) struct Writer(Api<ConfigMap>);

impl Writer {
    pub(crate) fn new(client: Client) -> Self {
        Self(Api::namespaced(client, "default"))
    }

    pub(crate) async fn create(&self, name: &str) {
        let object: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": name}})).expect("it is one");
        self.0
            .create(&PostParams::default(), &object)
            .await
            .expect("created");
    }

    pub(crate) async fn change(&self, name: &str, value: &str) {
        let patch = Patch::Merge(json!({"data": {"value": value}}));
        self.0
            .patch(name, &PatchParams::default(), &patch)
            .await
            .expect("changed");
    }

    /// Returns an object's value on the server.
    pub(crate) async fn value(&self, name: &str) -> Option<String> {
        let object = self.0.get(name).await.expect("it is there");
        object.data?.get("value").cloned()
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.0
            .delete(name, &DeleteParams::default())
            .await
            .expect("deleted");
    }

    /// Returns the objects on the server: name to version.
    pub(crate) async fn truth(&self) -> BTreeMap<String, String> {
        let list = self.0.list(&ListParams::default()).await.expect("listed");
        let pair =
            |object: ConfigMap| Some((object.metadata.name?, object.metadata.resource_version?));
        list.items.into_iter().filter_map(pair).collect()
    }
}

/// Returns the objects of a cache in namespace `default`: name to version.
pub(crate) fn cached(informer: &Informer) -> BTreeMap<String, String> {
    let objects = informer
        .cache::<lariat_cache::Metadata>()
        .select(&lariat_cache::Query::in_namespace("default"));
    let pair = |object: Arc<lariat_cache::Metadata>| {
        (object.key().name().to_owned(), object.version().to_string())
    };
    objects.flatten().map(pair).collect()
}

/// Waits, in virtual time, until a condition holds; fails with what was seen last.
pub(crate) async fn eventually<T: PartialEq + std::fmt::Debug>(
    mut look: impl AsyncFnMut() -> T,
    expected: T,
) {
    let mut last = look().await;
    for _ in 0..6_000 {
        if last == expected {
            return;
        }
        time::sleep(Duration::from_millis(100)).await;
        last = look().await;
    }
    assert_eq!(last, expected, "after ten minutes");
}

/// Records the changes, and checks that they fit together.
#[derive(Default)]
pub(crate) struct Recorder {
    /// The first change that did not fit. The publisher would catch a panic.
    violation: Mutex<Option<String>>,
    reported: Mutex<Vec<String>>,
    known: Mutex<BTreeMap<ObjectKey, String>>,
}

impl Recorder {
    pub(crate) fn reported(&self) -> Vec<String> {
        self.check();
        self.reported.lock().clone()
    }

    fn check(&self) {
        assert_eq!(*self.violation.lock(), None);
    }

    pub(crate) fn known(&self) -> BTreeMap<String, String> {
        self.check();
        let known = self.known.lock();
        known
            .iter()
            .map(|(key, version)| (key.name().to_owned(), version.clone()))
            .collect()
    }
}

impl Subscriber for Recorder {
    fn changed(&self, changes: &[Change]) {
        let (mut reported, mut known) = (self.reported.lock(), self.known.lock());
        for change in changes {
            let key = change.key().clone();
            reported.push(format!("{} {}", key.name(), change.cause()));
            let version = |object: &CachedObject| Some(object.version().to_string());
            let (expected, before) = match change {
                Change::Added { object, .. } => {
                    (None, known.insert(key, object.version().to_string()))
                }
                Change::Updated { old, new } => {
                    (version(old), known.insert(key, new.version().to_string()))
                }
                Change::Deleted { .. } => {
                    let before = known.remove(&key);
                    (
                        before.clone().or_else(|| Some("something".to_owned())),
                        before,
                    )
                }
                Change::Resynced { object } => (version(object), known.get(&key).cloned()),
                other => (Some(format!("{other:?}")), None),
            };
            if before != expected {
                let what = format!("{change:?}: before it was {before:?}");
                self.violation.lock().get_or_insert(what);
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check();
        }
    }
}
