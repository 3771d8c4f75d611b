//! How many connections there are.

use kube::api::{Api, ListParams};
use lariat_cache::{SharedCacheFactory, SharedClientFactory};
use lariat_client::{Http2, from_config};
use lariat_cluster::Cluster;
use lariat_core::Gvk;

use crate::bench::MINUTE;

const KINDS: [(&str, &str); 20] = [
    ("", "Pod"),
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "Service"),
    ("", "Node"),
    ("", "Namespace"),
    ("", "ServiceAccount"),
    ("", "Endpoints"),
    ("", "Event"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "LimitRange"),
    ("", "ResourceQuota"),
    ("", "ReplicationController"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("batch", "Job"),
    ("batch", "CronJob"),
];

/// Watches twenty kinds and returns how many connections that took.
async fn connections(cluster: &Cluster, config: kube::Config, http2: Http2) -> u64 {
    let client = from_config(config, http2).await.expect("it is valid");
    let factory = SharedCacheFactory::new(client.clone());
    let _informers: Vec<_> = KINDS
        .iter()
        .map(|(group, kind)| factory.for_kind(Gvk::new(group, "v1", kind)))
        .collect();
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("synced");
    assert_eq!(
        cluster
            .journal()
            .requests()
            .iter()
            .filter(|r| r.verb == "watch")
            .count(),
        20
    );
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::all(client);
    assert!(
        pods.list(&ListParams::default())
            .await
            .expect("it does")
            .items
            .is_empty()
    );
    factory.stop().await;
    cluster.connections()
}

fn config(url: &str) -> kube::Config {
    kube::Config::new(url.parse().expect("it is one"))
}

#[tokio::test]
async fn twenty_watches_share_a_connection_with_prior_knowledge() {
    let cluster = Cluster::builder().listen().start().await.unwrap();
    let url = cluster.url().unwrap();
    assert_eq!(
        connections(&cluster, config(&url), Http2::PriorKnowledge).await,
        1
    );
}

#[tokio::test]
async fn without_tls_http_1_is_spoken_unless_it_is_known_better() {
    for http2 in [Http2::Negotiated, Http2::Off] {
        let cluster = Cluster::builder().listen().start().await.unwrap();
        let url = cluster.url().unwrap();
        let connections = connections(&cluster, config(&url), http2).await;
        assert!(connections >= 20, "{connections}");
    }
}

#[cfg(feature = "rustls-tls")]
#[tokio::test]
async fn over_tls_twenty_watches_share_a_connection() {
    let certificate = include_str!("../../../../cluster/cluster/tests/api/tls/localhost.crt");
    let key = include_str!("../../../../cluster/cluster/tests/api/tls/localhost.key");
    let cluster = Cluster::builder()
        .tls(certificate, key)
        .listen()
        .start()
        .await
        .unwrap();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&cluster.kubeconfig().unwrap()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    // The one that was opened to find out what the server speaks is used for it.
    assert_eq!(connections(&cluster, config, Http2::Negotiated).await, 1);
}

#[tokio::test]
async fn a_server_that_restarts_is_found_again() {
    let first = Cluster::builder().listen().start().await.unwrap();
    let url = first.url().unwrap();
    let client = from_config(config(&url), Http2::PriorKnowledge)
        .await
        .unwrap();
    let factory = SharedCacheFactory::new(client);
    let informer = factory.for_kind(Gvk::new("", "v1", "ConfigMap"));
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    first.shutdown().await;
    let address = url.strip_prefix("http://").unwrap().parse().unwrap();
    let second = Cluster::builder().listen_on(address).start().await.unwrap();
    crate::bench::Writer::new(second.client()).create("a").await;
    let found = async {
        while informer.store().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(MINUTE, found)
        .await
        .expect("it is watched again");
    let _others: Vec<_> = KINDS
        .iter()
        .map(|(group, kind)| factory.for_kind(Gvk::new(group, "v1", kind)))
        .collect();
    factory.wait_for_sync(MINUTE).await.unwrap();
    assert_eq!(
        second.connections(),
        1,
        "what is known of the server is not forgotten"
    );
}

#[tokio::test]
async fn more_watches_than_a_connection_takes_have_another() {
    let cluster = Cluster::builder().listen().start().await.unwrap();
    let client = from_config(config(&cluster.url().unwrap()), Http2::PriorKnowledge)
        .await
        .unwrap();
    let namespaces: Vec<String> = (0..260).map(|number| format!("n{number}")).collect();
    let selection = lariat_cache::Selection::all().in_namespaces(&namespaces);
    let options = lariat_cache::KindOptions::default().selection(selection);
    let factory = SharedCacheFactory::builder(client.clone())
        .default_options(options)
        .build();
    let _informer = factory.for_kind(Gvk::new("", "v1", "ConfigMap"));
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    assert_eq!(cluster.connections(), 3);
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::all(client);
    let all = ListParams::default();
    let list = tokio::time::timeout(MINUTE, pods.list(&all));
    list.await
        .expect("it need not wait for a watch to end")
        .unwrap();
    factory.stop().await;
}

#[test]
fn client_outside_of_a_runtime_names_the_missing_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let factory = {
        let _entered = runtime.enter();
        SharedClientFactory::new(crate::bench::no_client())
    };
    let client = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| factory.client()));
    let Err(panic) = client else {
        panic!("kube needs a runtime");
    };
    let text = panic.downcast_ref::<&str>().copied().unwrap_or_default();
    assert!(
        text.contains("Lariat") && text.contains("tokio runtime"),
        "{text}"
    );
}
