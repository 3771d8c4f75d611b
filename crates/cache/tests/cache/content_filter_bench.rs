//! A kind whose content is cached of some objects only, for tests.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::{
    ContentFilter, Informer, InitialList, KindOptions, SharedCacheFactory, Subscription,
};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time;

use crate::bench::{MINUTE, Recorder, Writer, client_as, cluster, config_maps, eventually};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The objects of a replica, by name, and by a label that says so.
#[derive(Clone)]
pub(crate) struct Share {
    pub(crate) names: Arc<Mutex<BTreeSet<String>>>,
    pub(crate) changed: watch::Sender<u64>,
}

impl Share {
    pub(crate) fn of(names: &[&str]) -> Self {
        let share = Self {
            names: Arc::default(),
            changed: watch::Sender::new(0),
        };
        share.set(names);
        share
    }

    /// Chooses other objects, and sends nothing.
    pub(crate) fn set(&self, names: &[&str]) {
        *self.names.lock() = names.iter().map(|name| (*name).to_owned()).collect();
    }

    pub(crate) fn change(&self, names: &[&str]) {
        self.set(names);
        self.changed.send_modify(|number| *number += 1);
    }

    pub(crate) fn filter(&self) -> ContentFilter {
        let names = Arc::clone(&self.names);
        ContentFilter::new(self.changed.subscribe(), move |gvk, object| {
            gvk.kind() == "Secret"
                || object.labels().get("mine") == Some("yes")
                || names.lock().contains(object.key().name())
        })
    }
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

/// Returns which ConfigMaps are cached with content.
pub(crate) fn whole(informer: &Informer) -> Vec<String> {
    let snapshot = informer.store().snapshot();
    let objects = snapshot.in_namespace("default");
    let whole = objects.filter(|object| object.has_content());
    whole.map(|object| object.key().name().to_owned()).collect()
}

pub(crate) struct Filtered {
    pub(crate) cluster: Cluster,
    pub(crate) writer: Writer,
    pub(crate) share: Share,
    pub(crate) factory: SharedCacheFactory,
    pub(crate) informer: Informer,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) _subscription: Subscription,
}

impl Filtered {
    /// A cluster with four objects, and a cache that has the content of `a` and `b`.
    pub(crate) async fn begin(options: KindOptions) -> Self {
        let cluster = cluster().await;
        let writer = Writer::new(cluster.client());
        for name in ["a", "b", "c", "d"] {
            writer.create(name).await;
            writer.change(name, &format!("value of {name}")).await;
        }
        let share = Share::of(&["a", "b"]);
        let factory = SharedCacheFactory::builder(client_as(&cluster, "informer"))
            .default_options(options)
            .content_filter(share.filter())
            .build();
        let informer = factory.for_kind(config_maps());
        informer.need::<ConfigMap>();
        let recorder = Arc::new(Recorder::default());
        let subscription = informer.subscribe(Arc::clone(&recorder) as _);
        factory.start();
        factory.wait_for_sync(MINUTE).await.expect("synced");
        cluster.journal().clear();
        Self {
            cluster,
            writer,
            share,
            factory,
            informer,
            recorder,
            _subscription: subscription,
        }
    }

    pub(crate) fn count(&self, verb: &str) -> usize {
        self.cluster.journal().count(verb, "configmaps")
    }

    pub(crate) fn loads(&self) -> u64 {
        self.informer.status().loads
    }

    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let object = self.informer.cache::<ConfigMap>().get(&key(name));
        let object = object.ok()?.expect("it is cached");
        object.data.as_ref()?.get("value").cloned()
    }

    pub(crate) async fn has_content_of(&self, names: &[&str]) {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        eventually(async || whole(&self.informer), names).await;
    }

    /// Lets whatever is under way happen.
    pub(crate) async fn rest(&self) {
        time::sleep(5 * SECOND).await;
    }

    pub(crate) fn refuse(&self, time: Duration) {
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE);
        let rule = Rule::new(Action::Refuse(refusal)).client("informer");
        self.cluster.faults().add(rule.for_time(time));
    }
}

/// The function of an index.
pub(crate) fn value_of(object: &ConfigMap) -> Vec<String> {
    let values = object.data.iter();
    values
        .filter_map(|data| data.get("value").cloned())
        .collect()
}

pub(crate) fn both() -> [KindOptions; 2] {
    [InitialList::List, InitialList::WatchList]
        .map(|filling| KindOptions::default().initial_list(filling))
}
