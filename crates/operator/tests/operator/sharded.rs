//! Tests of operators whose replicas divide the objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderValue, Request};
use k8s_openapi::api::coordination::v1::Lease as LeaseObject;
use k8s_openapi::api::core::v1::{ConfigMap, Event as EventObject};
use kube::api::{Api, DeleteParams, ListParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use lariat_controller::{HandlerResult, Outcome, SharedControllerFactory};
use lariat_lease::Lease;
use lariat_operator::{Desired, Event, Finalizer, Operator, Reconcile};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;
use tower::ServiceExt;

use crate::bench::{Bench, SECOND, Widget};

/// The actions of replicas: the Widget, the action and the replica.
type Log = Arc<Mutex<Vec<(String, &'static str, &'static str)>>>;

struct Replica {
    operator: Operator,
}

impl Replica {
    async fn start(bench: &Bench, name: &'static str, log: &Log) -> Self {
        let agent = move |mut request: Request<Body>| {
            let headers = request.headers_mut();
            headers.insert("user-agent", HeaderValue::from_static(name));
            request
        };
        let client = Client::new(bench.cluster.service().map_request(agent), "default");
        let factory = SharedControllerFactory::builder(client)
            .sharding(Lease::new("widgeteer").identity(name))
            .build();
        let operator = Operator::new("widgeteer", &factory);
        let (widgets, maps) = (
            factory.for_object::<Widget>(),
            factory.for_object::<ConfigMap>(),
        );
        let (reconciled, cleaned) = (Arc::clone(log), Arc::clone(log));
        operator
            .reconciler("sizes", &widgets)
            .owns(&maps)
            .applies(&maps)
            .writes_status()
            .finalizer(
                Finalizer::new("demo.dev/cleanup"),
                move |cx: Reconcile<Widget>| {
                    let entry = (cx.key().name().to_owned(), "cleaned", name);
                    cleaned.lock().push(entry);
                    async { Ok(Outcome::done()) }
                },
            )
            .register(move |cx| reconcile(cx, name, Arc::clone(&reconciled)))
            .expect("registered");
        operator.start(2).await.expect("started");
        time::sleep(SECOND).await;
        Self { operator }
    }

    /// Returns for each Widget whether its content is cached.
    fn content(&self) -> BTreeMap<String, bool> {
        let widgets = self.operator.factory().for_object::<Widget>().cache();
        let snapshot = widgets.snapshot();
        let whole = |map: &Arc<lariat_cache::CachedObject>| {
            (map.key().name().to_owned(), map.has_content())
        };
        snapshot.iter().map(whole).collect()
    }
}

/// Applies as many ConfigMaps for a Widget as its size, and writes a status and an Event.
async fn reconcile(cx: Reconcile<Widget>, by: &'static str, log: Log) -> HandlerResult {
    let size = cx.object().spec.size;
    let name = cx.key().name().to_owned();
    let maps = (0..size).map(|number| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("{name}-{number}"), "namespace": "default"},
            "data": {"number": number.to_string()},
        })
    });
    cx.apply(maps.fold(Desired::new(), Desired::with_value))
        .await?;
    cx.set_status(&json!({"size": size})).await?;
    cx.event(Event::normal("Sized", format!("it has {size}")));
    log.lock().push((name, "reconciled", by));
    Ok(Outcome::done())
}

async fn map_names(bench: &Bench) -> Vec<String> {
    let maps: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    let maps = maps
        .list(&ListParams::default())
        .await
        .expect("listed")
        .items;
    maps.into_iter()
        .filter_map(|map| map.metadata.name)
        .collect()
}

/// Returns the replica that acted for each Widget, after checking that there was only one.
fn doers(log: &Log, what: &str) -> BTreeMap<String, &'static str> {
    let mut doers = BTreeMap::new();
    for (name, done, by) in log.lock().iter().filter(|(_, done, _)| *done == what) {
        let other = doers.insert(name.clone(), *by).filter(|other| other != by);
        assert_eq!(other, None, "{by} {done} {name} as well");
    }
    doers
}

/// Checks that each child has the lease under which it was written.
async fn check_signatures(bench: &Bench, by: &BTreeMap<String, &'static str>) {
    let leases: Api<LeaseObject> = Api::namespaced(bench.cluster.client(), "default");
    let leases = leases
        .list(&ListParams::default())
        .await
        .expect("listed")
        .items;
    let maps: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    for map in maps.list(&ListParams::default()).await.expect("listed") {
        let (name, _) = map
            .name_any()
            .rsplit_once('-')
            .map(|(name, child)| (name.to_owned(), child.to_owned()))
            .expect("a child");
        let lease = leases.iter().find(|lease| {
            let spec = lease.spec.as_ref();
            spec.and_then(|spec| spec.holder_identity.as_deref()) == Some(by[&name])
        });
        let lease = format!("default/{}", lease.expect("it has one").name_any());
        assert_eq!(map.annotations()["lariat.dev/lease"], lease);
    }
}

#[tokio::test(start_paused = true)]
async fn finalizers_status_events_and_prune_work_on_a_sharded_operator() {
    let bench = Bench::new().await;
    let log = Log::default();
    let one = Replica::start(&bench, "one", &log).await;
    let two = Replica::start(&bench, "two", &log).await;
    for number in 0..12 {
        bench.create(&format!("w{number}"), 2).await;
    }
    time::sleep(5 * SECOND).await;
    let by = doers(&log, "reconciled");
    assert_eq!(by.len(), 12);
    assert!(by.values().any(|by| *by == "one") && by.values().any(|by| *by == "two"));
    assert_eq!(map_names(&bench).await.len(), 24);
    for (name, by) in &by {
        let widget = bench.get(name).await.expect("there");
        assert_eq!(
            widget.metadata.finalizers.as_deref(),
            Some(&["demo.dev/cleanup".to_owned()][..])
        );
        assert_eq!(widget.status.and_then(|status| status.size), Some(2));
        // Only its holder caches it whole.
        assert_eq!(
            (one.content()[name], two.content()[name]),
            (*by == "one", *by == "two")
        );
    }
    check_signatures(&bench, &by).await;
    let events: Api<EventObject> = Api::namespaced(bench.cluster.client(), "default");
    let events = events
        .list(&ListParams::default())
        .await
        .expect("listed")
        .items;
    assert_eq!(events.len(), 12);

    // Moved objects are pruned and cleaned up by their new holder.
    log.lock().clear();
    one.operator.stop().await.expect("stopped");
    time::sleep(5 * SECOND).await;
    let moved: Vec<_> = by.iter().filter(|(_, by)| **by == "one").collect();
    assert_eq!(doers(&log, "reconciled").len(), moved.len());
    bench.cluster.journal().clear();
    for number in 0..12 {
        bench.resize(&format!("w{number}"), 1).await;
    }
    time::sleep(5 * SECOND).await;
    assert_eq!(map_names(&bench).await.len(), 12);
    for number in 0..12 {
        bench.delete(&format!("w{number}")).await;
    }
    time::sleep(5 * SECOND).await;
    let cleaned = doers(&log, "cleaned");
    assert!(
        cleaned.len() == 12 && cleaned.values().all(|by| *by == "two"),
        "{cleaned:?}"
    );
    assert!(bench.get("w1").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_joins_reconciles_what_moves_and_writes_nothing_that_is_as_wanted() {
    let bench = Bench::new().await;
    let log = Log::default();
    let one = Replica::start(&bench, "one", &log).await;
    for number in 0..12 {
        bench.create(&format!("w{number}"), 1).await;
    }
    time::sleep(5 * SECOND).await;
    log.lock().clear();
    bench.cluster.journal().clear();
    let _two = Replica::start(&bench, "two", &log).await;
    time::sleep(10 * SECOND).await;
    let moved = doers(&log, "reconciled");
    assert!(
        !moved.is_empty() && moved.values().all(|by| *by == "two"),
        "{moved:?}"
    );
    let journal = bench.cluster.journal();
    let writes =
        ["create", "patch", "update", "delete"].map(|verb| journal.count(verb, "configmaps"));
    assert_eq!(writes, [0; 4]);
    let content = one.content();
    let whole = content.values().filter(|has| **has).count();
    assert_eq!(whole, 12 - moved.len(), "{content:?}");
    // Objects that others delete are restored, wherever their owner is.
    let maps: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    for number in 0..12 {
        let deleted = maps
            .delete(&format!("w{number}-0"), &DeleteParams::default())
            .await;
        deleted.expect("deleted");
    }
    time::sleep(5 * SECOND).await;
    assert_eq!(map_names(&bench).await.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_leader_signs_what_it_applies_and_a_take_over_writes_nothing() {
    let bench = Bench::new().await;
    let maps: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    let signature = async || {
        let map = maps.get("a-0").await.expect("there");
        map.annotations()["lariat.dev/lease"].clone()
    };
    let elected = |name: &'static str| {
        let builder = SharedControllerFactory::builder(bench.cluster.client());
        let factory = builder
            .leader_election(Lease::new("widgeteer").identity(name))
            .build();
        let operator = Operator::new("widgeteer", &factory);
        let (widgets, configs) = (
            factory.for_object::<Widget>(),
            factory.for_object::<ConfigMap>(),
        );
        let sizes = operator
            .reconciler("sizes", &widgets)
            .owns(&configs)
            .applies(&configs);
        let log = Log::default();
        sizes
            .register(move |cx| reconcile(cx, name, Arc::clone(&log)))
            .expect("registered");
        operator
    };
    let one = elected("one");
    one.start(1).await.expect("started");
    bench.create("a", 1).await;
    time::sleep(5 * SECOND).await;
    assert_eq!(signature().await, "default/widgeteer#0");
    one.stop().await.expect("stopped");
    let two = elected("two");
    two.start(1).await.expect("started");
    time::sleep(5 * SECOND).await;
    assert_eq!(
        signature().await,
        "default/widgeteer#0",
        "nothing has changed"
    );
    bench.resize("a", 2).await;
    time::sleep(5 * SECOND).await;
    assert_eq!(signature().await, "default/widgeteer#0", "this one has not");
    let second = maps.get("a-1").await.expect("there");
    assert_eq!(
        second.annotations()["lariat.dev/lease"],
        "default/widgeteer#1"
    );
    two.stop().await.expect("stopped");
}
