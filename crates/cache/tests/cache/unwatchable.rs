//! Kinds that can be listed and not watched.

use std::time::Duration;

use lariat_cache::{MissingKind, Phase, SharedCacheFactory};
use lariat_core::Gvk;
use tokio::time;

use crate::bench::{MINUTE, eventually};
use crate::script::{Answer, Scripted};

const RESOURCES: &str = r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[
    {"name":"componentstatuses","kind":"ComponentStatus","namespaced":false,"verbs":["get","list"]},
    {"name":"bindings","kind":"Binding","namespaced":true,"verbs":["create"]}]}"#;

/// A client of a server that answers discovery of the core group, and nothing else.
fn client() -> kube::Client {
    let service = tower::service_fn(|request: http::Request<kube::client::Body>| async move {
        let (code, text) = match request.uri().path() {
            "/api/v1" => (200, RESOURCES),
            _ => (404, "404 page not found"),
        };
        let body = kube::client::Body::from(text.as_bytes().to_vec());
        http::Response::builder().status(code).body(body)
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn unwatchable_kind_fails_the_start_by_name() {
    for missing in [MissingKind::Refuse, MissingKind::Wait] {
        for (kind, expected) in [
            (
                "ComponentStatus",
                "1 kind cannot be synced: v1 ComponentStatus can be listed and cannot be watched, so there is no \
                 cache of it; read it with `KindClient::api`",
            ),
            (
                "Binding",
                "1 kind cannot be synced: v1 Binding cannot be listed and cannot be watched, so there is no cache of \
                 it; read it with `KindClient::api`",
            ),
        ] {
            let factory = SharedCacheFactory::builder(client())
                .missing_kind(missing)
                .build();
            let informer = factory.for_kind(Gvk::new("", "v1", kind));
            factory.start();
            let error = factory.wait_for_sync(MINUTE).await.unwrap_err();
            assert_eq!(error.to_string(), expected);
            assert_eq!(informer.status().phase, Phase::Unwatchable);
            assert!(!informer.synced().await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn list_without_version_says_that_no_watch_can_follow() {
    let bench = Scripted::start(|_| {
        let page = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[]}"#;
        Answer::Whole(200, Vec::new(), page.to_owned())
    });
    eventually(async || bench.status().last_error.is_some(), true).await;
    assert_eq!(
        bench.status().last_error.unwrap(),
        "list: malformed answer: the list has no resource version, so that no watch can follow it; the API may serve \
         lists only"
    );
    time::sleep(Duration::from_secs(1)).await;
    assert_ne!(bench.status().phase, Phase::Synced);
}
