//! Clusters, and a fleet whose reconcilers write down what they are called for.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use lariat_cluster::Cluster;
use lariat_controller::{HandlerResult, Outcome};
use lariat_fleet::{Fleet, FleetBuilder, FleetError, Member, SetupError};
use lariat_operator::Reconcile;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time;
use tokio_util::sync::CancellationToken;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// What was reconciled, as `cluster: namespace/name`.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn take(&self) -> Vec<String> {
        let mut all = std::mem::take(&mut *self.0.lock());
        all.sort();
        all
    }
}

/// Returns the builder of a fleet that reconciles ConfigMaps, and its log.
pub(crate) fn logging() -> (FleetBuilder, Log) {
    let log = Log::default();
    let seen = log.clone();
    let setup = move |member: &Member| register(member, &seen);
    (Fleet::builder("logger", setup), log)
}

pub(crate) fn register(member: &Member, log: &Log) -> Result<(), SetupError> {
    let (cluster, log) = (Arc::clone(member.name()), log.clone());
    let maps = member.operator().factory().for_object::<ConfigMap>();
    let reconciler = member.operator().reconciler("log", &maps);
    reconciler.register(move |cx: Reconcile<ConfigMap>| {
        // Every namespace has one.
        if cx.key().name() != "kube-root-ca.crt" {
            log.0.lock().push(format!("{cluster}: {}", cx.key()));
        }
        async { HandlerResult::Ok(Outcome::done()) }
    })?;
    Ok(())
}

/// A fleet that runs until it is stopped.
pub(crate) struct Run {
    pub(crate) fleet: Fleet,
    shutdown: CancellationToken,
    task: JoinSet<Result<(), FleetError>>,
}

impl Run {
    pub(crate) fn begin(fleet: &Fleet) -> Self {
        let shutdown = CancellationToken::new();
        let (running, ended) = (fleet.clone(), shutdown.clone().cancelled_owned());
        let task = async move { running.run(2, ended).await };
        Self {
            fleet: fleet.clone(),
            shutdown,
            task: JoinSet::from_iter([task]),
        }
    }

    pub(crate) async fn ended(&mut self) -> Result<(), FleetError> {
        let ended = self.task.join_next().await.expect("it runs");
        ended.expect("no panic")
    }

    pub(crate) async fn stop(mut self) -> Result<(), FleetError> {
        self.shutdown.cancel();
        self.ended().await
    }

    pub(crate) fn status(&self) -> Vec<String> {
        let status = self.fleet.status();
        status.iter().map(ToString::to_string).collect()
    }
}

/// Starts a cluster in memory.
pub(crate) async fn cluster() -> Cluster {
    Cluster::builder().start().await.expect("a cluster")
}

pub(crate) async fn create(cluster: &Cluster, name: &str) {
    let api = Api::<ConfigMap>::namespaced(cluster.client(), "default");
    let map = serde_json::from_value(json!({"metadata": {"name": name}})).expect("one");
    let created = api.create(&PostParams::default(), &map).await;
    created.expect("created");
}

/// Waits until everything that is due has happened; time is paused.
pub(crate) async fn settle() {
    time::sleep(Duration::from_millis(500)).await;
}
