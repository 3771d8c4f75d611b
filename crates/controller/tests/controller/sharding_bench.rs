//! Replicas of a program that share the keys, and a ledger of their calls, for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;
use lariat_cluster::Cluster;
use lariat_controller::{
    Context, FactoryBuilder, HandlerError, Outcome, RunError, SharedController,
    SharedControllerFactory,
};
use lariat_core::ObjectKey;
use lariat_lease::{Lease, Sharding};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::bench::{Bench, SECOND};

/// The number of slow objects. Their replica is random: all thirty belong to the same one once in 2³⁰ runs.
pub(crate) const WORKERS: usize = 30;

/// The calls of all replicas.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    pub(crate) inner: Arc<Mutex<Calls>>,
}

#[derive(Default)]
pub(crate) struct Calls {
    /// The replica that is processing each key.
    pub(crate) under_way: BTreeMap<ObjectKey, &'static str>,
    pub(crate) ended: Vec<(ObjectKey, &'static str)>,
    /// Calls that began while another replica was processing the key.
    pub(crate) overlaps: Vec<(ObjectKey, &'static str)>,
    /// The keys whose calls do not end.
    pub(crate) held: BTreeSet<ObjectKey>,
}

/// A running call; dropping it ends the call.
pub(crate) struct OpenCall {
    pub(crate) ledger: Ledger,
    pub(crate) key: ObjectKey,
}

impl Ledger {
    /// Records a call, and whether another replica is processing the key.
    pub(crate) fn enter(&self, key: &ObjectKey, by: &'static str) -> OpenCall {
        let mut calls = self.inner.lock();
        // A panic in a handler would only be the failure of a key.
        if calls.under_way.insert(key.clone(), by).is_some() {
            calls.overlaps.push((key.clone(), by));
        }
        drop(calls);
        OpenCall {
            ledger: self.clone(),
            key: key.clone(),
        }
    }

    pub(crate) fn clear(&self) {
        self.inner.lock().ended.clear();
    }

    /// Returns how often each replica handled each key since the last clearing, and checks that one did at a time.
    pub(crate) fn counts(&self) -> BTreeMap<(ObjectKey, &'static str), u32> {
        let (mut counts, calls) = (BTreeMap::new(), self.inner.lock());
        assert_eq!(calls.overlaps, [], "two replicas process a key");
        for call in &calls.ended {
            *counts.entry(call.clone()).or_default() += 1;
        }
        counts
    }

    /// Returns the replica that handled each key, after checking that each key was handled once.
    pub(crate) fn holders(&self) -> BTreeMap<ObjectKey, &'static str> {
        let mut holders = BTreeMap::new();
        for ((key, by), count) in self.counts() {
            assert_eq!(count, 1, "{by} handled {key} {count} times");
            let other = holders.insert(key.clone(), by);
            assert_eq!(other, None, "{by} handled {key} as well");
        }
        holders
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut calls = self.ledger.inner.lock();
        // None after an overlap.
        let by = calls.under_way.remove(&self.key);
        calls.ended.extend(by.map(|by| (self.key.clone(), by)));
    }
}

/// A replica of a program that handles ConfigMaps.
pub(crate) struct Replica {
    pub(crate) factory: SharedControllerFactory,
    pub(crate) config_maps: SharedController<ConfigMap>,
    pub(crate) stop: CancellationToken,
    pub(crate) run: JoinSet<Result<(), RunError>>,
}

/// The behaviour of a call.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    Prompt,
    /// It takes this long.
    Slow(Duration),
}

pub(crate) struct Program<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) ledger: Ledger,
    pub(crate) work: Work,
}

impl<'a> Program<'a> {
    pub(crate) fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            ledger: Ledger::default(),
            work: Work::Prompt,
        }
    }

    pub(crate) fn start(&self, name: &'static str) -> Replica {
        self.start_with(name, |builder| builder)
    }

    pub(crate) fn start_with(
        &self,
        name: &'static str,
        options: impl FnOnce(FactoryBuilder) -> FactoryBuilder,
    ) -> Replica {
        let ring = Sharding::new(Lease::new("shop").identity(name)).drain_timeout(20 * SECOND);
        let builder = SharedControllerFactory::builder(client(self.cluster, name));
        let factory = options(builder.sharding(ring)).build();
        let config_maps = factory.for_object::<ConfigMap>();
        let (ledger, work) = (self.ledger.clone(), self.work);
        let handler = move |cx: Context<ConfigMap>| {
            let ledger = ledger.clone();
            async move {
                let _entry = ledger.enter(cx.key(), name);
                while ledger.inner.lock().held.contains(cx.key()) {
                    sleep(SECOND / 10).await;
                }
                if let Work::Slow(time) = work {
                    sleep(time).await;
                }
                Ok::<_, HandlerError>(Outcome::done())
            }
        };
        config_maps
            .register_handler("log", handler)
            .expect("registered");
        let (running, stop) = (factory.clone(), CancellationToken::new());
        let stopped = stop.clone().cancelled_owned();
        let mut run = JoinSet::new();
        run.spawn(async move { running.run(WORKERS, stopped).await });
        Replica {
            factory,
            config_maps,
            stop,
            run,
        }
    }

    pub(crate) async fn started<const N: usize>(&self, names: [&'static str; N]) -> [Replica; N] {
        let replicas = names.map(|name| self.start(name));
        sleep(5 * SECOND).await;
        assert!(replicas.iter().all(Replica::is_member));
        replicas
    }
}

impl Replica {
    pub(crate) fn is_member(&self) -> bool {
        self.factory.leadership().expect("it takes part").leads()
    }

    pub(crate) async fn stop(&mut self) -> Result<(), RunError> {
        self.stop.cancel();
        self.ended().await
    }

    pub(crate) async fn ended(&mut self) -> Result<(), RunError> {
        let ended = self.run.join_next().await.expect("it ends once");
        ended.expect("it does not panic")
    }
}

pub(crate) fn client(cluster: &Cluster, name: &'static str) -> Client {
    let agent = move |mut request: Request<Body>| {
        let headers = request.headers_mut();
        headers.insert("user-agent", HeaderValue::from_static(name));
        request
    };
    Client::new(cluster.service().map_request(agent), "default")
}

pub(crate) async fn create_many(bench: &Bench, count: usize) {
    for number in 0..count {
        bench.create(&format!("order-{number}")).await;
    }
}
