//! What the audit reports, and what it ignores.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::cluster::Cluster;
use lariat::cluster::testing::{TestCluster, config_map, crd, define, namespace, object};
use lariat::controller::KindsRegistration;
use lariat::kube::api::Api;
use lariat::prelude::*;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::sleep;

use super::{AuditEntry, What, register};
use crate::{delete, merge};

struct Bench {
    cluster: TestCluster,
    operator: Operator,
    audit: KindsRegistration,
    entries: Arc<Mutex<Vec<AuditEntry>>>,
}

impl Bench {
    async fn new() -> Self {
        let cluster = Cluster::for_test().await;
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        let operator = Operator::new("dynamic-audit", &factory);
        let entries = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&entries);
        let audit = register(&operator, "default", move |entry: &AuditEntry| {
            noted.lock().push(entry.clone())
        });
        let audit = audit.expect("registered");
        operator.start(1).await.expect("started");
        let bench = Self {
            cluster,
            operator,
            audit,
            entries,
        };
        bench.take().await;
        bench
    }

    /// Returns what was reported since the last time.
    async fn take(&self) -> Vec<(String, What)> {
        sleep(Duration::from_secs(2)).await;
        let entries = std::mem::take(&mut *self.entries.lock());
        let short = |entry: AuditEntry| {
            (
                format!("{} {}", entry.gvk.kind(), entry.key.name()),
                entry.what,
            )
        };
        entries.into_iter().map(short).collect()
    }

    fn is_audited(&self, kind: &str) -> bool {
        self.audit.kinds().iter().any(|gvk| gvk.kind() == kind)
    }
}

fn said(what: &str, happened: What) -> Vec<(String, What)> {
    vec![(what.to_owned(), happened)]
}

/// lasso's dynamic controller looks objects up after their deletion, and so never reports deletions.
#[tokio::test(start_paused = true)]
async fn creations_updates_and_deletions_are_reported() {
    let bench = Bench::new().await;
    let client = bench.cluster.client();
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    config_map("settings", &[]).create(&client).await.unwrap();
    assert_eq!(
        bench.take().await,
        said("ConfigMap settings", What::Appeared)
    );
    merge(&config_maps, "settings", json!({"data": {"a": "b"}}))
        .await
        .unwrap();
    assert_eq!(
        bench.take().await,
        said("ConfigMap settings", What::Changed)
    );
    delete(&config_maps, "settings").await.unwrap();
    assert_eq!(bench.take().await, said("ConfigMap settings", What::Gone));
}

#[tokio::test(start_paused = true)]
async fn an_immediate_recreation_is_a_deletion_and_a_creation() {
    let bench = Bench::new().await;
    let client = bench.cluster.client();
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    config_map("settings", &[]).create(&client).await.unwrap();
    bench.take().await;
    delete(&config_maps, "settings").await.unwrap();
    config_map("settings", &[]).create(&client).await.unwrap();
    let entries = bench.take().await;
    assert_eq!(
        entries.iter().map(|(_, what)| *what).collect::<Vec<_>>(),
        [What::Gone, What::Appeared]
    );
}

#[tokio::test(start_paused = true)]
async fn other_namespaces_and_noise_are_left_out() {
    let bench = Bench::new().await;
    let client = bench.cluster.client();
    namespace("other").create(&client).await.unwrap();
    config_map("settings", &[])
        .namespace("other")
        .create(&client)
        .await
        .unwrap();
    object("coordination.k8s.io/v1", "Lease", "leader")
        .create(&client)
        .await
        .unwrap();
    assert_eq!(bench.take().await, []);
    for kind in ["Event", "Lease", "Node", "Namespace"] {
        assert!(!bench.is_audited(kind), "{kind}");
    }
    assert!(bench.is_audited("Pod") && bench.is_audited("Secret"));
    assert_eq!(bench.cluster.journal().count("watch", "leases"), 0);
}

#[tokio::test(start_paused = true)]
async fn each_kind_has_one_watch_of_metadata_only() {
    let bench = Bench::new().await;
    bench.cluster.journal().assert_one_watch("secrets");
    let status = bench.operator.factory().status();
    let kinds = bench.audit.kinds().len();
    assert!(kinds > 20 && status.len() == kinds, "{kinds}");
    let secret = lariat::cluster::testing::secret("key", &[("a", &"x".repeat(100_000))]);
    secret.create(&bench.cluster.client()).await.unwrap();
    assert_eq!(bench.take().await, said("Secret key", What::Appeared));
    let status = bench.operator.factory().status();
    let secrets = status
        .iter()
        .find(|kind| kind.cache.gvk.kind() == "Secret")
        .unwrap();
    assert!(
        secrets.cache.bytes < 10_000,
        "{} bytes",
        secrets.cache.bytes
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_kind_is_audited_and_the_objects_of_a_removed_one_are_deleted() {
    let bench = Bench::new().await;
    let client = bench.cluster.client();
    define(&client, &crd("demo.dev", "v1", "Gadget"))
        .await
        .unwrap();
    assert_eq!(bench.take().await, []);
    assert!(bench.is_audited("Gadget"));
    object("demo.dev/v1", "Gadget", "lever")
        .create(&client)
        .await
        .unwrap();
    assert_eq!(bench.take().await, said("Gadget lever", What::Appeared));
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    delete(&definitions, "gadgets.demo.dev").await.unwrap();
    assert_eq!(bench.take().await, said("Gadget lever", What::Gone));
    sleep(Duration::from_secs(180)).await;
    assert!(!bench.is_audited("Gadget"));
    let before = bench.cluster.journal().count("watch", "gadgets");
    define(&client, &crd("demo.dev", "v1", "Gadget"))
        .await
        .unwrap();
    object("demo.dev/v1", "Gadget", "spring")
        .create(&client)
        .await
        .unwrap();
    assert_eq!(bench.take().await, said("Gadget spring", What::Appeared));
    assert!(bench.cluster.journal().count("watch", "gadgets") > before);
}
