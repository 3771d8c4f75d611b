//! Which answers to own writes the caches take.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use lariat_cache::{
    GateDecision, KindOptions, PendingWrite, Selection, SharedCacheFactory, Source, SourceBody,
    SourceError, SourceRequest, WriteGate, WriteReceipt, WriteResult,
};
use lariat_cluster::faults::{Action, Rule};
use lariat_core::{Gvk, describe};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use crate::bench::{MINUTE, cluster, config_maps};
use crate::own_writes::{key, labelled, mute_cluster, started};

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

/// A source of the caller may leave objects out, or read another cluster.
#[tokio::test(start_paused = true)]
async fn own_write_stays_out_of_a_cache_with_a_source() {
    let cluster = cluster().await;
    let factory = SharedCacheFactory::new(cluster.client());
    let source = Arc::new(Labelled(cluster.client()));
    let informer = factory.for_source(config_maps(), source);
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    // Answers are applied only if the resource of the kind is known.
    informer.client().resource().await.unwrap();
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    let params = PostParams::default();
    for app in ["web", "other"] {
        let map = json!({"metadata": {"name": app, "labels": {"app": app}}});
        let map = serde_json::from_value(map).unwrap();
        api.create(&params, &map).await.unwrap();
    }
    assert!(!informer.store().contains(&key("other")));
    time::sleep(MINUTE).await;
    assert_eq!(informer.store().keys(), [key("web")]);
    api.delete("web", &DeleteParams::default()).await.unwrap();
    time::sleep(MINUTE).await;
    assert!(informer.store().is_empty());
}

/// Reads ConfigMaps of an application.
struct Labelled(kube::Client);

impl Source for Labelled {
    fn get<'a>(
        &'a self,
        request: &'a SourceRequest,
    ) -> futures::future::BoxFuture<'a, Result<http::Response<SourceBody>, SourceError>> {
        use http_body_util::BodyExt;
        let query = format!("{}&labelSelector=app%3Dweb", request.query);
        Box::pin(async move {
            let get = http::Request::get(format!("/api/v1/configmaps?{query}"));
            let answer = self.0.send(get.body(kube::client::Body::empty())?).await?;
            Ok(answer.map(|body| body.map_err(SourceError::from).boxed_unsync()))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn own_write_is_shown_if_fields_are_name_and_namespace() {
    let cluster = mute_cluster().await;
    let options = |fields: &str| {
        let selection = Selection::all().with_fields(fields.parse().unwrap());
        KindOptions::default().selection(selection)
    };
    for (fields, expected) in [
        ("metadata.name!=b", &["a", "c"][..]),
        ("metadata.name=b,metadata.namespace=default", &["b"]),
        ("metadata.namespace!=default", &[]),
    ] {
        let factory = SharedCacheFactory::builder(cluster.client())
            .default_options(options(fields))
            .build();
        let informer = factory.for_kind(config_maps());
        factory.start();
        factory.wait_for_sync(MINUTE).await.unwrap();
        let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
        for name in ["a", "b", "c"] {
            let (params, map) = (PostParams::default(), labelled(name, &[]));
            api.create(&params, &map).await.unwrap();
        }
        let names: Vec<_> = informer
            .store()
            .keys()
            .iter()
            .map(|key| key.name().to_owned())
            .collect();
        assert_eq!(names, expected, "{fields}");
        for name in ["a", "b", "c"] {
            api.delete(name, &DeleteParams::default()).await.unwrap();
        }
        assert!(informer.store().is_empty(), "{fields}");
    }
}

#[tokio::test(start_paused = true)]
async fn own_write_is_left_to_the_watch_if_the_server_evaluates_fields() {
    let cluster = cluster().await;
    let pods = Gvk::new("", "v1", "Pod");
    let selection = Selection::all().with_fields("spec.nodeName=n".parse().unwrap());
    let factory = SharedCacheFactory::builder(cluster.client())
        .default_options(KindOptions::default().selection(selection))
        .build();
    let informer = factory.for_kind(pods);
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    informer.client().resource().await.unwrap();
    let api: Api<Pod> = Api::namespaced(factory.clients().client(), "default");
    let containers = json!([{"name": "c", "image": "i"}]);
    for (name, node) in [("here", "n"), ("elsewhere", "m")] {
        let spec = json!({"nodeName": node, "containers": containers});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let pod = serde_json::from_value(pod).unwrap();
        api.create(&PostParams::default(), &pod).await.unwrap();
    }
    assert!(!informer.store().contains(&key("elsewhere")));
    time::sleep(MINUTE).await;
    assert_eq!(informer.store().keys(), [key("here")]);
}

/// The server handled the deletion first, so what was applied is another object.
#[tokio::test(start_paused = true)]
async fn own_creation_is_cached_after_a_later_deletion_of_its_name() {
    let cluster = mute_cluster().await;
    let outside: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let (params, map) = (PostParams::default(), labelled("a", &[]));
    outside.create(&params, &map).await.unwrap();
    let (factory, cache) = started(&cluster, Selection::all()).await;
    let slow = Rule::new(Action::Delay(Duration::from_secs(2))).verb("patch");
    cluster.faults().add(slow.times(1));
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    let (mut applies, applying) = (JoinSet::new(), api.clone());
    applies.spawn(async move {
        let params = PatchParams::apply("test").force();
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        applying.patch("a", &params, &Patch::Apply(map)).await
    });
    time::sleep(Duration::from_secs(1)).await;
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(cache.is_empty());
    let applied = applies.join_next().await.unwrap().unwrap().unwrap();
    let cached = cache.get(&key("a")).unwrap().expect("it is cached");
    assert_eq!(cached.metadata.uid, applied.metadata.uid);
}

/// Answers each write with the same JSON, and reads from a cluster.
fn answering(cluster: &lariat_cluster::Cluster, answer: serde_json::Value) -> kube::Client {
    let service = cluster.service();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (mut service, answer) = (service.clone(), answer.to_string());
        async move {
            use http_body_util::BodyExt;
            use tower_service::Service;
            if request.method() != http::Method::GET {
                let body = kube::client::Body::from(answer.into_bytes());
                let answer = http::Response::builder().header("content-type", "application/json");
                let answer = answer.body(body.map_err(SourceError::from).boxed_unsync());
                return Ok(answer.expect("it is valid"));
            }
            let answer = service.call(request).await?;
            Ok::<_, std::io::Error>(
                answer.map(|body| body.map_err(SourceError::from).boxed_unsync()),
            )
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn answer_with_unusual_types_is_applied() {
    let cluster = cluster().await;
    for (number, odd) in [
        json!({"spec": "a text"}),
        json!({"spec": 5, "details": ["a", "list"]}),
        json!({"spec": {"finalizers": "none"}, "details": {"uid": 7}}),
        json!({"spec": null, "details": null}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut answer = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "a", "namespace": "default", "uid": format!("u{number}"), "resourceVersion": "999999"}});
        answer
            .as_object_mut()
            .unwrap()
            .extend(odd.as_object().unwrap().clone());
        let factory = SharedCacheFactory::new(answering(&cluster, answer.clone()));
        let informer = factory.for_kind(config_maps());
        factory.start();
        factory.wait_for_sync(MINUTE).await.unwrap();
        let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
        let patch = Patch::Merge(json!({}));
        // kube cannot decode some of the answers; the cache takes them nevertheless.
        let _ = api.patch("a", &PatchParams::default(), &patch).await;
        assert!(informer.store().contains(&key("a")), "{answer}");
    }
}

/// An API server of its own may answer before it deletes the object, or never delete it.
#[tokio::test(start_paused = true)]
async fn deletion_is_left_to_the_watch_unless_it_is_certain() {
    let of = |api_version: &str, kind: &str, metadata: serde_json::Value| {
        let mut answer = json!({"apiVersion": api_version, "kind": kind, "metadata": {
            "name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1"}});
        let members = metadata.as_object().unwrap().clone();
        answer["metadata"].as_object_mut().unwrap().extend(members);
        answer
    };
    let marked = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let held = json!({"finalizers": ["demo.dev/wait"]});
    let odd = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": {"a": 1}});
    let (maps, leases) = (
        config_maps(),
        Gvk::new("coordination.k8s.io", "v1", "Lease"),
    );
    for (gvk, metadata, is_deleted) in [
        (&maps, json!({}), true),
        (&maps, marked.clone(), true),
        (&maps, held, false),
        (&maps, odd, false),
        (&leases, json!({}), false),
        (&leases, marked, true),
    ] {
        let cluster = cluster().await;
        let resource = kube::api::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(
            gvk.group(),
            gvk.version(),
            gvk.kind(),
        ));
        let outside: Api<DynamicObject> =
            Api::namespaced_with(cluster.client(), "default", &resource);
        let object = DynamicObject::new("a", &resource);
        let created = outside
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        let mut answer = of(&gvk.api_version(), gvk.kind(), metadata);
        answer["metadata"]["uid"] = json!(created.metadata.uid);
        let factory = SharedCacheFactory::new(answering(&cluster, answer.clone()));
        let informer = factory.for_kind(gvk.clone());
        factory.start();
        factory.wait_for_sync(MINUTE).await.unwrap();
        let client = factory.clients().client();
        let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
        let _ = api.delete("a", &DeleteParams::default()).await;
        assert_eq!(informer.store().is_empty(), is_deleted, "{answer}");
    }
}

/// A proxy may send the head of an answer, and then stall.
#[tokio::test(start_paused = true)]
async fn answer_timeout_covers_bodies_of_reads_and_writes() {
    let cluster = mute_cluster().await;
    let timeout = Duration::from_secs(5);
    let builder = SharedCacheFactory::builder(cluster.client());
    let factory = builder.answer_timeout(timeout).build();
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    let slow = || {
        Rule::new(Action::Bandwidth(1))
            .resource("configmaps")
            .times(1)
    };
    let map = |name: &str| -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
    };
    let create = async |name| {
        api.create(&PostParams::default(), &map(name))
            .await
            .map(drop)
    };
    create("a").await.unwrap();
    let get = async || api.get("a").await.map(drop);
    for (verb, method) in [("create", "POST"), ("get", "GET")] {
        cluster.faults().add(slow().verb(verb));
        let began = Instant::now();
        let answer = if verb == "create" {
            create("b").await
        } else {
            get().await
        };
        let error = describe(&answer.unwrap_err()).to_string();
        assert_eq!(began.elapsed(), timeout, "virtual time");
        assert!(error.contains(&format!("{method} /api/v1")), "{error}");
        assert!(error.contains("did not end within 5s"), "{error}");
    }
    // The write was carried out, and its answer was good.
    get().await.unwrap();
    assert!(api.get_opt("b").await.unwrap().is_some());
}

/// A gate compares a dry run with the live object, which it reads first.
#[tokio::test(start_paused = true)]
async fn dry_run_is_sent_although_live_object_stalls() {
    struct DryRuns;
    impl WriteGate for DryRuns {
        fn admit(&self, _: &PendingWrite<'_>) -> GateDecision {
            GateDecision::DryRun(Box::new(Ignores))
        }
    }
    struct Ignores;
    impl WriteReceipt for Ignores {
        fn ended(self: Box<Self>, _: &WriteResult<'_>) {}
    }
    let cluster = mute_cluster().await;
    let builder = SharedCacheFactory::builder(cluster.client());
    let factory = builder.answer_timeout(Duration::from_secs(5)).build();
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    api.create(&PostParams::default(), &map).await.unwrap();
    assert!(factory.clients().set_gate(Arc::new(DryRuns)));
    let slow = Rule::new(Action::Bandwidth(1))
        .resource("configmaps")
        .verb("get");
    cluster.faults().add(slow);
    let patch = Patch::Merge(json!({"data": {"key": "value"}}));
    let began = Instant::now();
    api.patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(5), "virtual time");
}
