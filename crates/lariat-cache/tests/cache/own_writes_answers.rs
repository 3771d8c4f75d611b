//! Which answers to own writes the caches take.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cache::SharedCacheFactory;
use lariat_core::Gvk;
use serde_json::json;

use crate::bench::{MINUTE, cluster, config_maps};
use crate::own_writes::{key, labelled, mute_cluster};

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_answered_with_its_last_state_is_gone_when_it_is() {
    let cluster = mute_cluster().await;
    let factory = SharedCacheFactory::new(cluster.client());
    let pods = factory.for_kind(Gvk::new("", "v1", "Pod")).cache::<Pod>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let api: Api<Pod> = Api::namespaced(factory.clients().client(), "default");
    let pod =
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    api.create(&PostParams::default(), &pod).await.unwrap();
    assert_eq!(pods.len(), 1);
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(pods.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_subresource_that_answers_with_the_object_is_shown() {
    let cluster = mute_cluster().await;
    let factory = SharedCacheFactory::new(cluster.client());
    let pods = factory.for_kind(Gvk::new("", "v1", "Pod")).cache::<Pod>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let api: Api<Pod> = Api::namespaced(factory.clients().client(), "default");
    let pod =
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.create(
        &PostParams::default(),
        &serde_json::from_value(pod).unwrap(),
    )
    .await
    .unwrap();
    let patch = Patch::Merge(json!({"status": {"phase": "Running"}}));
    api.patch_status("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let phase = pods
        .get(&key("a"))
        .unwrap()
        .unwrap()
        .status
        .as_ref()
        .unwrap()
        .phase
        .clone();
    assert_eq!(phase.as_deref(), Some("Running"));
}

/// What a proxied service answers is none of the API server's business.
#[tokio::test(start_paused = true)]
async fn an_answer_about_another_object_is_ignored() {
    use lariat_cache::KindClient;
    use std::sync::Arc as Shared;
    let forged = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
        "name": "other", "namespace": "kube-system", "uid": "u", "resourceVersion": "999999999",
    }});
    let cluster = cluster().await;
    let service = cluster.service();
    let forging = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (mut service, forged) = (service.clone(), forged.to_string());
        async move {
            use http_body_util::BodyExt;
            use tower_service::Service;
            if request.method() == http::Method::PATCH {
                let body = kube::client::Body::from(forged.into_bytes());
                let answer = http::Response::builder().header("content-type", "application/json");
                return Ok(answer
                    .body(body.map_err(lariat_cache::SourceError::from).boxed_unsync())
                    .expect("it is valid"));
            }
            let answer = service.call(request).await?;
            Ok::<_, std::io::Error>(
                answer.map(|body| body.map_err(lariat_cache::SourceError::from).boxed_unsync()),
            )
        }
    });
    let factory = SharedCacheFactory::new(kube::Client::new(forging, "default"));
    let cache = factory.for_kind(config_maps()).cache::<ConfigMap>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let client: Shared<KindClient> = factory.clients().for_kind(config_maps());
    let api = client.api(Some("default")).await.unwrap();
    let patch = Patch::Merge(json!({}));
    api.patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    api.patch_subresource("proxy", "a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert!(cache.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_metadata_only_is_taken_by_caches_of_metadata() {
    for has_content in [false, true] {
        let cluster = mute_cluster().await;
        let outside: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
        let (params, map) = (PostParams::default(), labelled("a", &[]));
        outside.create(&params, &map).await.unwrap();
        let factory = SharedCacheFactory::new(cluster.client());
        let informer = factory.for_kind(config_maps());
        let cache = has_content.then(|| informer.cache::<ConfigMap>());
        factory.start();
        factory.wait_for_sync(MINUTE).await.unwrap();
        let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
        let label = |value: &str| Patch::Merge(json!({"metadata": {"labels": {"app": value}}}));
        let params = PatchParams::default();
        api.patch_metadata("a", &params, &label("y")).await.unwrap();
        let label_now = || {
            let object = informer.store().get(&key("a")).expect("there");
            object.labels().get("app").map(str::to_owned)
        };
        // In a cache of content the watch must bring it, because the answer has no content.
        let expected = if has_content { "x" } else { "y" };
        assert_eq!(label_now().as_deref(), Some(expected));
        api.patch("a", &params, &label("z")).await.unwrap();
        assert_eq!(label_now().as_deref(), Some("z"));
        drop(cache);
    }
}
