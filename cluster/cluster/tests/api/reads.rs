//! Get, list, discovery.

use crate::bench::{Bench, CONFIG_MAPS, text, version};
use http::StatusCode;
use serde_json::json;
use tokio::time::{Duration, Instant};

#[tokio::test(start_paused = true)]
async fn lists_are_sorted_by_key_and_items_of_built_in_kinds_have_no_type() {
    let bench = Bench::new().await;
    for name in ["b", "a", "c10", "c9"] {
        bench.config_map(name, json!({})).await;
    }
    let list = bench.get(CONFIG_MAPS).await.json();
    assert_eq!(
        (text(&list, "/kind"), text(&list, "/apiVersion")),
        ("ConfigMapList", "v1")
    );
    assert!(list["items"][0]["kind"].is_null());
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a", "b", "c10", "c9"]);
    assert!(
        bench
            .names("/api/v1/namespaces/none/configmaps")
            .await
            .is_empty()
    );
    let by_namespace = "/api/v1/configmaps?fieldSelector=metadata.namespace=default";
    assert_eq!(bench.names(by_namespace).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn selectors_select() {
    let bench = Bench::new().await;
    bench
        .config_map("a", json!({"app": "web", "tier": "1"}))
        .await;
    bench
        .config_map("b", json!({"app": "api", "tier": "2"}))
        .await;
    bench.config_map("c", json!({})).await;
    for (query, expected) in [
        ("labelSelector=app%3Dweb", &["a"][..]),
        ("labelSelector=app+in+(web,api),tier%3E1", &["b"]),
        ("labelSelector=!app", &["c"]),
        ("fieldSelector=metadata.name%3Db", &["b"]),
        ("fieldSelector=metadata.name!%3Db&labelSelector=app", &["a"]),
    ] {
        assert_eq!(
            bench.names(&format!("{CONFIG_MAPS}?{query}")).await,
            expected,
            "{query}"
        );
    }
    for query in [
        "labelSelector=a+b",
        "fieldSelector=data.a%3D1",
        "fieldSelector=x",
        "limit=x",
    ] {
        bench
            .get(&format!("{CONFIG_MAPS}?{query}"))
            .await
            .fails(400, "BadRequest");
    }
}

#[tokio::test(start_paused = true)]
async fn fields_of_a_kind_select_where_the_kind_says_so() {
    let bench = Bench::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    for (name, node) in [("a", "n1"), ("b", "n2")] {
        let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node,
            "containers": [{"name": "c", "image": "i"}]}});
        bench.post(pods, &pod).await;
    }
    assert_eq!(
        bench
            .names(&format!("{pods}?fieldSelector=spec.nodeName%3Dn2"))
            .await,
        ["b"]
    );
    assert_eq!(
        bench
            .names(&format!("{pods}?fieldSelector=status.phase%3DPending"))
            .await
            .len(),
        2
    );
    let status = bench
        .get(&format!("{pods}?fieldSelector=spec.image%3Dx"))
        .await;
    assert_eq!(
        status.fails(400, "BadRequest")["message"],
        "field label not supported: spec.image"
    );
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_state_whatever_is_written_between_them() {
    let bench = Bench::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        bench.config_map(name, json!({})).await;
    }
    let page = bench.get(&format!("{CONFIG_MAPS}?limit=2")).await.json();
    assert_eq!(page["metadata"]["remainingItemCount"], 3);
    bench.delete(&format!("{CONFIG_MAPS}/d")).await;
    bench.config_map("bb", json!({})).await;
    let next = format!(
        "{CONFIG_MAPS}?limit=5&continue={}",
        text(&page, "/metadata/continue")
    );
    assert_eq!(bench.names(&next).await, ["c", "d", "e"]);

    let selected = bench
        .get(&format!("{CONFIG_MAPS}?limit=1&labelSelector=!x"))
        .await
        .json();
    assert!(selected["metadata"]["remainingItemCount"].is_null());

    bench.cluster.compact();
    let status = bench.get(&next).await.fails(410, "Expired");
    let rest = format!(
        "{CONFIG_MAPS}?continue={}",
        text(&status, "/metadata/continue")
    );
    assert_eq!(
        bench.names(&rest).await,
        ["bb", "c", "e"],
        "the rest as it is now"
    );
    bench
        .get(&format!("{CONFIG_MAPS}?continue=garbage"))
        .await
        .fails(400, "BadRequest");
}

/// Such a token was answered with what is there now, as the state of a version that does not exist yet.
#[tokio::test(start_paused = true)]
async fn a_token_of_a_version_that_is_not_there_yet_has_expired() {
    let bench = Bench::new().await;
    for name in ["a", "b"] {
        bench.config_map(name, json!({})).await;
    }
    let backup = bench.cluster.snapshot();
    bench.config_map("c", json!({})).await;
    let page = bench.get(&format!("{CONFIG_MAPS}?limit=1")).await.json();
    let token = text(&page, "/metadata/continue");
    let rewound = bench.cluster.rewind_to(&backup).await;
    rewound.expect("there is no data file");
    let next = bench.get(&format!("{CONFIG_MAPS}?continue={token}")).await;
    let status = next.fails(410, "Expired");
    let rest = text(&status, "/metadata/continue");
    assert_eq!(
        bench.names(&format!("{CONFIG_MAPS}?continue={rest}")).await,
        ["b"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_read_says_which_version_it_wants() {
    let bench = Bench::new().await;
    let first = version(&bench.config_map("a", json!({})).await);
    bench.config_map("b", json!({})).await;
    let exactly = format!("{CONFIG_MAPS}?resourceVersion={first}&resourceVersionMatch=Exact");
    assert_eq!(bench.names(&exactly).await, ["a"]);
    assert_eq!(
        bench
            .names(&format!("{CONFIG_MAPS}?resourceVersion={first}"))
            .await,
        ["a", "b"]
    );
    assert_eq!(
        bench
            .names(&format!("{CONFIG_MAPS}?resourceVersion=0&limit=1"))
            .await,
        ["a", "b"]
    );
    for (query, code, reason) in [
        (
            "resourceVersion=1&resourceVersionMatch=Exact",
            410,
            "Expired",
        ),
        ("resourceVersion=x", 400, "BadRequest"),
        ("resourceVersionMatch=Exact", 422, "Invalid"),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            422,
            "Invalid",
        ),
        (
            "resourceVersion=1&resourceVersionMatch=Other",
            422,
            "Invalid",
        ),
        ("sendInitialEvents=true", 422, "Invalid"),
    ] {
        bench
            .get(&format!("{CONFIG_MAPS}?{query}"))
            .await
            .fails(code, reason);
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_from_the_future_waits_three_seconds() {
    let bench = Bench::new().await;
    let start = Instant::now();
    let answer = bench
        .get(&format!("{CONFIG_MAPS}?resourceVersion=1000000"))
        .await;
    let status = answer.fails(504, "Timeout");
    assert_eq!(
        status["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
    assert_eq!(answer.headers["retry-after"], "1");
    assert_eq!(start.elapsed(), Duration::from_secs(3));

    let next = version(&bench.get(CONFIG_MAPS).await.json()) + 1;
    let path = format!("{CONFIG_MAPS}?resourceVersion={next}");
    let (names, _) = tokio::join!(bench.names(&path), bench.config_map("a", json!({})));
    assert_eq!(
        names,
        ["a"],
        "it is answered as soon as the version is reached"
    );
}

#[tokio::test(start_paused = true)]
async fn discovery_lists_kinds_and_subresources() {
    let bench = Bench::new().await;
    let core = bench.get("/api/v1").await.json();
    let resources = core["resources"].as_array().unwrap();
    let named = |name: &str| resources.iter().find(|each| each["name"] == name).unwrap();
    assert_eq!(named("pods")["shortNames"], json!(["po"]));
    assert_eq!(
        named("pods/status")["verbs"],
        json!(["get", "patch", "update"])
    );
    assert_eq!(named("nodes")["namespaced"], false);
    assert_eq!(
        bench.get("/apis/apps").await.json()["preferredVersion"]["version"],
        "v1"
    );
    assert_eq!(bench.get("/api").await.json()["versions"], json!(["v1"]));
    assert!(bench.get("/version").await.json()["gitVersion"].is_string());
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(bench.get(path).await.text, "ok");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_paths_are_answered_as_by_a_real_server() {
    let bench = Bench::new().await;
    for path in [
        "/apis/nope.dev",
        "/apis/nope.dev/v1",
        "/apis/nope.dev/v1/things",
        "/nosuch",
    ] {
        let answer = bench.get(path).await;
        assert_eq!(
            (answer.code, &*answer.text),
            (StatusCode::NOT_FOUND, "404 page not found\n")
        );
    }
    for path in [
        "/apis/apps/v9",
        "/api/v2",
        "/apis/apps/v1/nothings",
        "/api/v1/nothings/x",
    ] {
        bench.get(path).await.fails(404, "NotFound");
    }
    bench
        .delete("/api/v1/configmaps")
        .await
        .fails(405, "MethodNotAllowed");
    bench
        .post("/api/v1/configmaps", &json!({}))
        .await
        .fails(405, "MethodNotAllowed");
    bench
        .put(CONFIG_MAPS, &json!({}))
        .await
        .fails(405, "MethodNotAllowed");
}

#[tokio::test(start_paused = true)]
async fn the_journal_has_verbs_and_resources() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    bench.get(&format!("{CONFIG_MAPS}/a")).await;
    bench.get(CONFIG_MAPS).await;
    drop(bench.watch(&format!("{CONFIG_MAPS}?watch=1")).await);
    bench.delete(CONFIG_MAPS).await;
    let journal = bench.cluster.journal();
    let verbs: Vec<String> = journal
        .requests()
        .into_iter()
        .map(|request| request.verb)
        .collect();
    assert_eq!(
        verbs,
        ["create", "get", "list", "watch", "deletecollection"]
    );
    assert_eq!(journal.count("watch", "configmaps"), 1);
    assert_eq!(journal.requests()[1].name.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_list_is_continued_at_any_version_but_no_other() {
    let bench = Bench::new().await;
    for name in ["a", "b"] {
        bench.config_map(name, json!({})).await;
    }
    let page = bench.get(&format!("{CONFIG_MAPS}?limit=1")).await.json();
    let token = text(&page, "/metadata/continue");
    let next = format!("{CONFIG_MAPS}?continue={token}&resourceVersion=");
    assert_eq!(bench.names(&format!("{next}0")).await, ["b"]);
    bench
        .get(&format!("{next}501"))
        .await
        .fails(400, "BadRequest");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_goes_on_at_version_zero_has_no_pages() {
    let bench = Bench::new().await;
    for name in ["a", "b", "c", "d"] {
        bench.config_map(name, json!({})).await;
    }
    let first = bench.get(&format!("{CONFIG_MAPS}?limit=1")).await.json();
    let token = text(&first, "/metadata/continue");
    let rest = format!("{CONFIG_MAPS}?limit=1&continue={token}");
    assert_eq!(bench.names(&rest).await, ["b"]);
    let rest = bench.get(&format!("{rest}&resourceVersion=0")).await.json();
    assert_eq!(rest["items"].as_array().map(Vec::len), Some(3));
    assert!(
        rest["metadata"]
            .get("continue")
            .is_none_or(|token| token == "")
    );
}
