//! kube-rs' client and discovery.

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, GroupVersionKind, ListParams, LogParams, PostParams};
use kube::discovery::{self, Discovery, Scope};
use lariat_cluster::testing::{TestCluster, namespace, pod};
use lariat_cluster::{Cluster, User};

use crate::bench::with_widgets;

fn check(discovery: &Discovery) {
    for (group, version, kind, plural, scope) in [
        ("", "v1", "Pod", "pods", Scope::Namespaced),
        ("", "v1", "Node", "nodes", Scope::Cluster),
        ("apps", "v1", "Deployment", "deployments", Scope::Namespaced),
        ("demo.dev", "v1", "Widget", "widgets", Scope::Namespaced),
    ] {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let (resource, capabilities) = discovery.resolve_gvk(&gvk).expect("it is discovered");
        assert_eq!(resource.plural, plural);
        assert_eq!(capabilities.scope, scope, "{kind}");
        assert!(capabilities.supports_operation("watch"), "{kind}");
    }
    let gvk = GroupVersionKind::gvk("demo.dev", "v1", "Widget");
    let (_, widgets) = discovery.resolve_gvk(&gvk).expect("it is discovered");
    let subresources: Vec<&str> = widgets
        .subresources
        .iter()
        .map(|(each, _)| &*each.plural)
        .collect();
    assert_eq!(subresources, ["status"]);
}

#[tokio::test]
async fn discovery_finds_built_in_and_custom_kinds() {
    let (_cluster, client) = with_widgets().await;
    check(&Discovery::new(client.clone()).run().await.unwrap());
    let pinned = GroupVersionKind::gvk("demo.dev", "v1", "Widget");
    let (resource, _) = discovery::pinned_kind(&client, &pinned).await.unwrap();
    assert_eq!(resource.plural, "widgets");
}

#[tokio::test]
async fn aggregated_discovery_finds_the_same() {
    let (cluster, client) = with_widgets().await;
    cluster.journal().clear();
    check(&Discovery::new(client).run_aggregated().await.unwrap());
    assert_eq!(
        cluster.journal().requests().len(),
        2,
        "one request for the core group, and one for all others"
    );
}

#[tokio::test]
async fn pages_follow_each_other() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    for name in ["a", "b", "c"] {
        namespace(name).create(&client).await.unwrap();
    }
    let namespaces: Api<Namespace> = Api::all(client);
    let (mut names, mut options) = (Vec::new(), ListParams::default().limit(2));
    loop {
        let page = namespaces.list(&options).await.unwrap();
        names.extend(page.items.into_iter().filter_map(|each| each.metadata.name));
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => options = options.continue_token(&token),
            _ => break,
        }
    }
    let expected = [
        "a",
        "b",
        "c",
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn a_client_with_a_token_is_its_user_and_never_an_administrator() {
    let user = User::new("ann").group("system:authenticated");
    let builder = Cluster::builder().rbac().token_of("sesame", user);
    let cluster = builder.for_test().await;
    // The last two cannot be in a header.
    for (token, expected) in [
        ("sesame", 403),
        ("other", 401),
        ("schlüssel", 403),
        ("a\nb", 403),
    ] {
        let namespaces: Api<Namespace> = Api::all(cluster.client_with_token(token));
        let error = namespaces.list(&ListParams::default()).await.unwrap_err();
        let kube::Error::Api(status) = error else {
            panic!("{token}: {error}");
        };
        assert_eq!(status.code, expected, "{token}: {}", status.message);
        let is_ann = status.message.contains("User \"ann\"");
        assert_eq!(is_ann, token == "sesame", "{}", status.message);
    }
}

async fn running_pod(cluster: &TestCluster) -> kube::Result<Api<Pod>> {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let web = pod("web").set("/spec/nodeName", "node-1").to();
    pods.create(&PostParams::default(), &web).await?;
    Ok(pods)
}

#[tokio::test]
async fn what_needs_a_node_is_refused_and_not_hung() {
    let cluster = Cluster::for_test().await;
    let pods = running_pod(&cluster).await.unwrap();
    let logs = pods.logs("web", &LogParams::default()).await;
    assert!(matches!(logs, Err(kube::Error::Api(_))), "{logs:?}");
}
