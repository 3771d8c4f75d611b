//! Informers of Lariat whose connection does not work any more.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use lariat::Gvk;
use lariat::cache::{InitialList, KindOptions, SharedCacheFactory};
use lariat_client::Http2;
use lariat_cluster::Cluster;
use tokio::time;

use crate::MINUTE;
use crate::dark::{Proxy, SILENCE, TEST, pass};
use crate::server::{Answer, Speech, balancer, is_watch, whole};

fn config_maps() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

#[tokio::test]
async fn an_informer_watches_again_when_a_liveness_test_has_failed() {
    let cluster = Cluster::builder().listen().start().await.unwrap();
    let url = cluster.url().unwrap();
    let (_, port) = url.rsplit_once(':').unwrap();
    let proxy = Proxy::before(port.parse().unwrap());
    let factory = SharedCacheFactory::new(proxy.server.client(Http2::Off).await);
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    proxy.darken();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let map = serde_json::from_str(r#"{"metadata":{"name":"a"}}"#).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    pass(SILENCE).await;
    proxy.until_tested().await;
    proxy.lighten();
    pass(TEST).await;
    let shown = async {
        while informer.store().is_empty() {
            time::sleep(Duration::from_millis(5)).await;
        }
    };
    time::timeout(MINUTE, shown).await.expect("it is seen");
    factory.stop().await;
}

/// A watch with a line, which then is silent.
fn line(line: &str) -> Answer {
    let frame = Ok::<_, Infallible>(Frame::data(Bytes::from(format!("{line}\n"))));
    let frames = futures::stream::iter([frame]).chain(futures::stream::pending());
    Response::new(BodyExt::boxed(StreamBody::new(frames)))
}

#[tokio::test]
async fn silent_watch_is_opened_again_on_a_fresh_connection() {
    let object = |name: &str, version: u64| {
        format!(
            r#"{{"metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}"#
        )
    };
    let bookmark = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"10"}}}"#;
    let added = format!(r#"{{"type":"ADDED","object":{}}}"#, object("b", 11));
    let list = format!(
        r#"{{"metadata":{{"resourceVersion":"10"}},"items":[{}]}}"#,
        object("a", 10)
    );
    let kinds = r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps",
        "singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["list","watch"]}]}"#;
    let server = balancer(Speech::Http2(100), move |number, request| {
        match (request.uri().path(), number) {
            ("/api/v1", _) => whole(200, kinds),
            ("/api/v1/configmaps", 0) if is_watch(request) => line(bookmark),
            ("/api/v1/configmaps", _) if is_watch(request) => line(&added),
            ("/api/v1/configmaps", _) => whole(200, &list),
            _ => whole(404, "404 page not found"),
        }
    });
    let client = server.client(Http2::PriorKnowledge).await;
    let options = KindOptions::default().initial_list(InitialList::List);
    let factory = SharedCacheFactory::builder(client)
        .default_options(options)
        .build();
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("it syncs");
    let heard = async {
        while informer.status().watches == 0 {
            time::sleep(Duration::from_millis(10)).await;
        }
        // Until the bookmark has been read.
        time::sleep(Duration::from_millis(300)).await;
    };
    time::timeout(MINUTE, heard).await.expect("it is watched");
    pass(Duration::from_secs(91)).await;
    let moved = async {
        while informer.store().len() < 2 {
            time::sleep(Duration::from_millis(10)).await;
        }
    };
    time::timeout(MINUTE, moved)
        .await
        .expect("the other server is watched");
    assert_eq!(server.connections(), 2);
}
