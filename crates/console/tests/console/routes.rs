//! The responses of each route.

use std::collections::BTreeSet;

use hyper::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams};
use lariat_console::Console;
use lariat_console::api::{
    Action, ControllerDetail, Health, KeyDetail, KindNames, KindRef, Overview, Plan,
};
use lariat_controller::{Context, HandlerError, HandlerResult, Outcome};
use lariat_core::{Gvk, ObjectKey};
use serde_json::{Value as Json, json};

use crate::bench::{Bench, MAPS, until};

#[tokio::test]
async fn an_overview_has_the_program_and_its_controllers() {
    let bench = Bench::with(|console, _| console.name("shop").version("1.2.3")).await;
    bench.idle("log");
    bench.create("web").await;
    bench.start().await;
    let overview: Overview = until(async || {
        let overview: Overview = bench.client.get("/api/v1/overview").await.good();
        let controller = overview.controllers.first()?;
        (controller.handlers[0].calls >= 1).then_some(overview)
    })
    .await;
    assert_eq!(overview.program.name, "shop");
    assert_eq!(overview.program.version.as_deref(), Some("1.2.3"));
    assert_eq!(overview.allowed.user, "system:anonymous");
    assert!(!overview.allowed.actions);
    let controller = &overview.controllers[0];
    assert_eq!(
        controller.kind,
        KindRef::new("", &Gvk::new("", "v1", "ConfigMap"))
    );
    assert_eq!(controller.phase, "synced");
    assert_eq!(controller.workers, Some(2));
    assert!(controller.objects >= 1);
    let handler = &controller.handlers[0];
    assert_eq!((&*handler.name, handler.failures), ("log", 0));
    assert!(handler.time.count >= 1 && handler.time.max > 0.0);
    let cache = &overview.caches[0];
    assert!(cache.synced && !cache.stale && cache.bytes > 0);
    assert_eq!(cache.last_error, None);
    assert_eq!(overview.planned, None);
    assert!(overview.health.ready, "{:?}", overview.health);
}

#[tokio::test]
async fn samples_and_rates_follow_what_runs() {
    let bench = Bench::new().await;
    bench.idle("log");
    bench.start().await;
    until(async || {
        bench.maps.enqueue(&ObjectKey::namespaced("default", "web"));
        let overview: Overview = bench.client.get("/api/v1/overview").await.good();
        let controller = &overview.controllers[0];
        let has_runs = controller.samples.iter().any(|sample| sample.calls > 0);
        (has_runs && controller.handlers[0].rate > 0.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_failing_handler_is_visible_with_its_error() {
    let bench = Bench::new().await;
    let handler = |_: Context<ConfigMap>| async { HandlerResult::Err("the bank is closed".into()) };
    bench.maps.register_handler("pay", handler).unwrap();
    bench.create("web").await;
    bench.start().await;
    let key = format!("{MAPS}/keys/default~web");
    let detail: KeyDetail = until(async || {
        let answer = bench.client.get(&key).await;
        let detail: KeyDetail = (answer.status == 200).then(|| answer.good())?;
        let has_retried = detail
            .runs
            .iter()
            .any(|run| run.causes.iter().any(|it| it.what == "retry"));
        has_retried.then_some(detail)
    })
    .await;
    let call = &detail.runs[0].calls[0];
    assert_eq!(
        (&*call.handler, &*call.ended, call.failed),
        ("pay", "failed", true)
    );
    assert_eq!(call.error.as_deref(), Some("the bank is closed"));
    assert!(call.again.is_some(), "{call:?}");
    let detail: ControllerDetail = bench.client.get(MAPS).await.good();
    assert!(detail.controller.handlers[0].failures > 0);
    let failing = detail
        .failing_keys
        .iter()
        .find(|it| it.key == "default/web");
    let failing = failing.expect("the key fails");
    assert_eq!(failing.error.as_deref(), Some("the bank is closed"));
}

/// A ConfigMap enqueues a Secret, whose handler writes another ConfigMap.
#[tokio::test]
async fn a_chain_of_causes_is_followed_back_by_its_links() {
    let bench = Bench::new().await;
    let secrets = bench.factory.for_object::<Secret>();
    let target = secrets.clone();
    let first = move |cx: Context<ConfigMap>| {
        let target = target.clone();
        async move {
            if cx.key().name() == "first" {
                target.enqueue(&ObjectKey::namespaced("default", "second"));
            }
            HandlerResult::Ok(Outcome::done())
        }
    };
    bench.maps.register_handler("first", first).unwrap();
    let client = bench.factory.client();
    let second = move |_: Context<Secret>| {
        let api = Api::<ConfigMap>::namespaced(client.clone(), "default");
        async move {
            let patch = json!({"data": {"of": "second"}});
            api.patch("third", &PatchParams::default(), &Patch::Merge(patch))
                .await?;
            HandlerResult::Ok(Outcome::done())
        }
    };
    secrets.register_handler("second", second).unwrap();
    bench.create("third").await;
    bench.start().await;
    bench.create("first").await;

    let find = async |path: String, what: &str| {
        until(async || {
            let answer = bench.client.get(&path).await;
            let detail: KeyDetail = (answer.status == 200).then(|| answer.good())?;
            let mut causes = detail.runs.into_iter().flat_map(|run| run.causes);
            causes.find(|cause| cause.what == what)
        })
        .await
    };
    let third = find(format!("{MAPS}/keys/default~third"), "wrote").await;
    assert_eq!(third.handler.as_deref(), Some("Secret second"));
    let link = third.link.expect("the Secret");
    assert_eq!((&*link.kind.kind, &*link.key), ("Secret", "default/second"));
    let path = format!(
        "/api/v1/controllers/{}/keys/default~second",
        link.kind.segment()
    );
    let second = find(path, "enqueued").await;
    assert_eq!(second.handler.as_deref(), Some("ConfigMap first"));
    let link = second.link.expect("the ConfigMap");
    assert_eq!(
        (&*link.kind.kind, &*link.key),
        ("ConfigMap", "default/first")
    );
    let first = find(format!("{MAPS}/keys/default~first"), "added").await;
    assert_eq!(first.link, None);
}

#[tokio::test]
async fn what_is_unknown_or_malformed_is_refused() {
    let bench = Bench::new().await;
    bench.idle("log");
    bench.start().await;
    for (path, code, message) in [
        ("/api/v1/nothing", 404, "/openapi.json lists"),
        ("/nothing", 404, "no such route"),
        (
            "/api/v1/controllers/core~v1~Pod",
            404,
            "no controller of v1 Pod",
        ),
        ("/api/v1/controllers/core~v1", 400, "GROUP~VERSION~KIND"),
        (
            "/api/v1/controllers/core~v1~ConfigMap?context=x",
            404,
            "no controller",
        ),
        (
            "/api/v1/controllers/core~v1~ConfigMap/keys/web",
            400,
            "NAMESPACE~NAME",
        ),
        (
            "/api/v1/controllers/core~v1~ConfigMap/keys/a~web",
            404,
            "a/web is neither cached nor queued",
        ),
        (
            "/api/v1/controllers/core~v1~Pod/keys/a~web",
            404,
            "no controller",
        ),
        ("/api/v1/controllers/%ff/keys/a~web", 400, "UTF-8"),
        ("/api/v1/overview?watch=maybe", 400, "true or false"),
        ("/readyz/nothing", 404, "no check"),
    ] {
        let refused = bench.client.get(path).await.refused(code);
        assert!(refused.contains(message), "{path}: {refused}");
    }
    // A request creates nothing: a kind without a controller stays without.
    assert_eq!(bench.factory.caches().status().len(), 1);
    let long = format!("/api/v1/overview?x={}", "a".repeat(16 * 1024));
    bench.client.get(&long).await.refused(414);
    for (method, path, allow) in [
        (Method::POST, "/api/v1/overview", "GET, HEAD"),
        (Method::DELETE, "/", "GET, HEAD"),
        (Method::PUT, "/metrics", "GET, HEAD"),
        (Method::GET, "/api/v1/actions", "POST"),
    ] {
        let answer = bench.client.send(method, path, "").await;
        answer.refused(405);
        assert_eq!(answer.header("allow"), allow, "{path}");
    }
}

#[tokio::test]
async fn all_answers_have_the_headers_that_browsers_need() {
    let bench = Bench::new().await;
    for path in [
        "/",
        "/assets/main.js",
        "/metrics",
        "/readyz",
        "/api/v1/overview",
        "/nothing",
        "/openapi.json",
    ] {
        let answer = bench.client.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        let policy = answer.header("content-security-policy");
        assert!(
            policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        assert!(policy.contains("default-src 'none'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
    }
    let page = bench.client.get("/").await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, "text/html; charset=utf-8")
    );
    let head = bench.client.send(Method::HEAD, "/", "").await;
    assert_eq!((head.status, &*head.text), (200, ""));
}

#[tokio::test]
async fn the_overview_is_streamed_until_the_program_stops() {
    let bench = Bench::new().await;
    bench.idle("log");
    bench.start().await;
    let mut stream = bench.client.watch("/api/v1/overview?watch=true").await;
    assert_eq!(stream.status, 200);
    for _ in 0..2 {
        let (event, data) = stream.event().await.expect("it goes on");
        assert_eq!(event, "overview");
        let overview: Overview = serde_json::from_str(&data).expect("an overview");
        assert_eq!(overview.controllers.len(), 1);
    }
    bench.factory.stop().await.unwrap();
    stream.ends().await;
    bench.server.ended().await;
}

#[tokio::test]
async fn streams_are_bounded() {
    let bench = Bench::new().await;
    let mut streams = Vec::new();
    let refused = loop {
        let stream = bench.client.watch("/api/v1/overview?watch=true").await;
        if stream.status != 200 {
            break stream.status;
        }
        streams.push(stream);
    };
    assert_eq!((refused, streams.len()), (429, 32));
    // The others go on, and a place that is given back is taken again.
    assert!(streams[0].event().await.is_some());
    streams.pop();
    until(async || {
        let stream = bench.client.watch("/api/v1/overview?watch=true").await;
        (stream.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn several_factories_are_told_apart_by_their_contexts() {
    let bench = Bench::new().await;
    let (near, far) = (
        &bench.factory,
        lariat_controller::SharedControllerFactory::builder(bench.cluster.client()).build(),
    );
    bench.idle("near");
    let handler = |_: Context<ConfigMap>| async { HandlerResult::Ok(Outcome::done()) };
    far.for_object::<ConfigMap>()
        .register_handler("far", handler)
        .unwrap();
    let console = Console::on("127.0.0.1:0")
        .with("near", near)
        .with("far", &far);
    let server = console.start().unwrap();
    let client = lariat_testing::http::Client::new(server.address());
    let overview: Overview = client.get("/api/v1/overview").await.good();
    let found: Vec<_> = overview
        .controllers
        .iter()
        .map(|it| (&*it.kind.context, &*it.handlers[0].name))
        .collect();
    assert_eq!(found, [("far", "far"), ("near", "near")]);
    for context in ["near", "far"] {
        let detail: ControllerDetail = client
            .get(&format!("{MAPS}?context={context}"))
            .await
            .good();
        assert_eq!(detail.controller.handlers[0].name, context);
    }
    let metrics = client.get("/metrics").await.text;
    assert!(metrics.contains("ctx=\"near\"") && metrics.contains("ctx=\"far\""));
    // The server ends with the last of them.
    drop(far);
    until(async || {
        let overview: Overview = client.get("/api/v1/overview").await.good();
        (overview.controllers.len() == 1).then_some(())
    })
    .await;
    bench.start().await;
    bench.factory.stop().await.unwrap();
    server.ended().await;
}

#[tokio::test]
async fn given_up_key_is_listed_with_its_error() {
    let bench = Bench::new().await;
    let fails = |cx: Context<ConfigMap>| async move {
        match cx.object()? {
            Some(_) => Err(HandlerError::terminal("no colour")),
            None => Ok(Outcome::done()),
        }
    };
    let maps = bench.factory.for_object::<ConfigMap>();
    maps.register_handler("paint", fails).unwrap();
    bench.create("web").await;
    bench.start().await;
    let detail: ControllerDetail = until(async || {
        let detail: ControllerDetail = bench.client.get(MAPS).await.good();
        let is_there = detail
            .given_up_keys
            .iter()
            .any(|it| it.key == "default/web");
        is_there.then_some(detail)
    })
    .await;
    let handler = &detail.controller.handlers[0];
    assert_eq!(handler.given_up, detail.given_up_keys.len());
    let mut given_up = detail.given_up_keys.iter();
    let given_up = given_up.find(|it| it.key == "default/web").unwrap();
    assert_eq!(given_up.error.as_deref(), Some("no colour"));
    let path = format!("{MAPS}/keys/default~web");
    let key: KeyDetail = bench.client.get(&path).await.good();
    assert_eq!((&*key.given_up[0].handler, key.queued), ("paint", None));
}

#[tokio::test]
async fn unknown_key_is_refused_with_its_namesakes() {
    let bench = Bench::new().await;
    bench.idle("log");
    bench.create("web").await;
    bench.start().await;
    let path = format!("{MAPS}/keys/~web");
    let refused = bench.client.get(&path).await.refused(404);
    let hint = "ConfigMap is namespaced; did you mean default/web?";
    assert!(refused.contains(hint), "{refused}");
    let path = format!("{MAPS}/keys/other~web");
    let refused = bench.client.get(&path).await.refused(404);
    assert!(refused.ends_with("did you mean default/web?"), "{refused}");
}

#[tokio::test]
async fn names_of_kinds_are_those_of_discovery() {
    let bench = Bench::new().await;
    bench.idle("log");
    bench.start().await;
    let names: Vec<KindNames> = bench.client.get("/api/v1/names").await.good();
    assert_eq!(names.len(), 1);
    assert_eq!(
        names[0].kind,
        KindRef::new("", &Gvk::new("", "v1", "ConfigMap"))
    );
    assert_eq!(names[0].names, ["configmaps", "configmap", "cm"]);
}

#[tokio::test]
async fn the_document_of_the_api_has_its_routes() {
    let bench = Bench::new().await;
    let document: Json = bench.client.get("/openapi.json").await.good();
    let paths: BTreeSet<&str> = document["paths"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "/api/v1/actions",
        "/api/v1/controllers/{kind}",
        "/api/v1/controllers/{kind}/keys/{key}",
        "/api/v1/health",
        "/api/v1/names",
        "/api/v1/overview",
        "/api/v1/plan",
    ];
    assert_eq!(paths, BTreeSet::from(expected));
    let _: Health = bench.client.get("/api/v1/health").await.good();
    let plan: Plan = bench.client.get("/api/v1/plan").await.good();
    assert_eq!(plan, Plan::default());
    let action = Action::Relist {
        kind: KindRef::new("", &Gvk::new("", "v1", "Pod")),
    };
    assert_eq!(serde_json::to_value(&action).unwrap()["action"], "relist");
}

#[tokio::test]
async fn a_change_is_shown_by_the_paths_of_its_fields() {
    let bench = Bench::new().await;
    bench.idle("log");
    bench.create("web").await;
    bench.start().await;
    let api = Api::<ConfigMap>::namespaced(bench.cluster.client(), "default");
    let patch = json!({"data": {"colour": "a-value-that-is-not-shown"}});
    api.patch("web", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    let path = format!("{MAPS}/keys/default~web");
    let fields = until(async || {
        let answer = bench.client.get(&path).await;
        assert!(
            !answer.text.contains("a-value-that-is-not-shown"),
            "{}",
            answer.text
        );
        let detail: KeyDetail = (answer.status == 200).then(|| answer.good())?;
        let mut causes = detail.runs.into_iter().flat_map(|run| run.causes);
        Some(causes.find(|cause| cause.what == "updated")?.fields)
    })
    .await;
    assert_eq!(fields, ["data.colour"]);
}

#[tokio::test]
async fn a_call_that_runs_is_shown() {
    let bench = Bench::new().await;
    let handler = |_: Context<ConfigMap>| std::future::pending::<HandlerResult>();
    bench.maps.register_handler("slow", handler).unwrap();
    bench.create("web").await;
    bench.start().await;
    let detail = until(async || {
        let detail: ControllerDetail = bench.client.get(MAPS).await.good();
        (!detail.in_progress.is_empty()).then_some(detail)
    })
    .await;
    let call = &detail.in_progress[0];
    assert_eq!(call.handler.as_deref(), Some("slow"));
    let (namespace, name) = call.key.split_once('/').expect("a namespace");
    let path = format!("{MAPS}/keys/{namespace}~{name}");
    let key: KeyDetail = bench.client.get(&path).await.good();
    assert_eq!(
        key.in_progress.expect("it runs").handler.as_deref(),
        Some("slow")
    );
    assert!(key.resource_version.is_some());
}
