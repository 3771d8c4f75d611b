//! What the routes answer.

use hyper::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use lariat_core::Gvk;
use lariat_seal::{LocalKeys, Sealing};
use lariat_sql::Schema;
use serde_json::json;

use crate::bench::{Bench, MAPS};

#[tokio::test]
async fn kinds_are_listed_with_their_fields_and_state() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    client.get(&format!("{MAPS}?limit=1")).await;
    let answer = client.get("/v1/kinds").await;
    assert_eq!(answer.status, 200);
    let kinds = answer.json();
    assert_eq!(kinds["isOpen"], true);
    let map = &kinds["kinds"][0];
    assert_eq!(map["path"], "v1/core/v1/ConfigMap");
    assert_eq!(map["state"], "ready");
    assert_eq!(
        map["fields"][5],
        json!({"name": "data.color", "type": "text", "isMany": false, "isSearchable": true, "steps": ["data", "color"]})
    );
    assert_eq!(
        (&map["withoutContent"], &map["skippedColumns"]),
        (&json!(0), &json!(0))
    );
    let namespace = json!([{"name": "ns", "kind": "v1 Namespace"}]);
    assert_eq!(map["associations"], namespace);
    assert_eq!(kinds["kinds"][1]["kind"], "Namespace");
}

#[tokio::test]
async fn lists_are_filtered_sorted_paged_and_counted() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let mut version = String::new();
    for (name, size, color) in [("a", "10", "red"), ("b", "9", "red"), ("c", "8", "blue")] {
        let data = json!({"size": size, "color": color});
        version = bench.create(name, data).await;
    }
    let get = async |query: &str| {
        let url = format!("{MAPS}?revision={version}&{query}");
        let answer = client.get(&url).await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        answer
    };
    let reds = get("filter=data.color=red&sort=data.size").await;
    assert_eq!(reds.names(), ["b", "a"]);
    assert_eq!(reds.json()["total"], 2);
    assert_eq!(reds.header("content-type"), "application/json");
    let page = get("filter=data.size&sort=-data.size&page=2&pagesize=2").await;
    assert_eq!(page.names(), ["c"]);
    assert_eq!(page.json()["total"], 3);
    let summary = get("filter=data.size&summary=data.color&summaryonly").await;
    let counts = json!([{"by": "data.color", "counts": [
        {"value": "red", "objects": 2}, {"value": "blue", "objects": 1},
    ]}]);
    assert_eq!(summary.json()["summaries"], counts);
    assert_eq!(summary.names(), [""; 0]);
    assert_eq!(get("search=blu").await.names(), ["c"]);
}

#[tokio::test]
async fn a_list_without_a_limit_has_a_page_and_continues() {
    let mut bench = Bench::new().await;
    bench.fill();
    let serve = |service: lariat_sql::http::SqlService| service.open_to_everyone().default_page(2);
    let client = bench.serve(serve).await;
    let mut version = String::new();
    for name in ["a", "b", "c"] {
        version = bench.create(name, json!({"size": "1"})).await;
    }
    let url = format!("{MAPS}?revision={version}&filter=data.size");
    let first = client.get(&url).await;
    assert_eq!(first.names(), ["a", "b"]);
    assert!(first.json()["total"].is_null());
    let first = first.json();
    let next = first["continue"].as_str().expect("there are more");
    let second = client.get(&format!("{url}&continue={next}")).await;
    assert_eq!(second.names(), ["c"]);
    assert!(second.json()["continue"].is_null());
}

#[tokio::test]
async fn one_object_is_found_by_its_exact_name() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    bench.create("n1", json!({"color": "red"})).await;
    let version = bench.create("n01", json!({"color": "blue"})).await;
    let get = async |path: &str| client.get(&format!("{path}?revision={version}")).await;
    let map = get(&format!("{MAPS}/default/n01")).await;
    assert_eq!(map.json()["data"]["color"], "blue");
    let map = get(&format!("{MAPS}/default/n1")).await;
    assert_eq!(map.json()["data"]["color"], "red");
    let tag = map.header("etag").to_owned();
    let again = client.with("if-none-match", tag);
    assert_eq!(again.get(&format!("{MAPS}/default/n1")).await.status, 304);
    let namespace = client.get("/v1/core/v1/Namespace/default").await;
    assert_eq!(namespace.json()["metadata"]["name"], "default");
    for path in ["/default/n001", "/other/n1", "/n1"] {
        let message = get(&format!("{MAPS}{path}")).await.refused(404);
        assert!(message.contains("there is no v1 ConfigMap"), "{message}");
    }
}

#[tokio::test]
async fn what_has_not_changed_is_not_sent_again() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let version = bench.create("a", json!({"color": "red"})).await;
    let url = format!("{MAPS}?filter=data.color=red");
    let first = client.get(&format!("{url}&revision={version}")).await;
    let first = first.json()["revision"].as_str().expect("one").to_owned();
    let tag = client.get(&url).await.header("etag").to_owned();
    assert!(tag.starts_with("W/"), "{tag}");
    let again = client.with("if-none-match", format!("\"other\", {tag}"));
    let answer = again.get(&url).await;
    assert_eq!((answer.status, answer.header("etag")), (304, &*tag));
    assert_eq!(answer.header("vary"), "Authorization");
    assert!(answer.text.is_empty(), "since {first}");
    // Another question has another answer, and so has another state.
    assert_eq!(again.get(MAPS).await.status, 200);
    let version = bench.patch("a", json!({"data": {"size": "1"}})).await;
    let answer = again.get(&format!("{url}&revision={version}")).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn other_methods_are_answered_as_they_should() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let whole = client.get(MAPS).await;
    let head = client.send(Method::HEAD, MAPS, "").await;
    assert_eq!((head.status, head.text.len()), (200, 0));
    let length = whole.text.len().to_string();
    assert_eq!(head.header("content-length"), length);
    assert_eq!(whole.header("content-length"), length);
    let options = client.send(Method::OPTIONS, MAPS, "").await;
    assert_eq!(options.status, 204);
    assert_eq!(options.header("allow"), "GET, HEAD, OPTIONS");
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let answer = client.send(method, MAPS, "").await;
        assert!(answer.refused(405).contains("read-only"));
        assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS");
    }
}

#[tokio::test]
async fn the_page_and_the_description_are_served() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let page = client.get("/").await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let again = client.with("if-none-match", page.header("etag"));
    assert_eq!(again.get("/").await.status, 304);
    let openapi = client.get("/openapi.json").await.json();
    assert_eq!(openapi["openapi"], "3.1.0");
    let list = &openapi["paths"]["/v1/core/v1/ConfigMap"]["get"];
    let about = list["description"].as_str().expect("a description");
    assert!(about.contains("`data.color` (text, searchable)"), "{about}");
    // Every reference leads somewhere.
    let text = openapi.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let place = reference.split('"').next().expect("an end");
        assert!(openapi.pointer(place).is_some(), "{place}");
    }
}

#[tokio::test]
async fn routes_can_be_nested_in_those_of_a_program() {
    let bench = Bench::new().await;
    bench.fill();
    let service = lariat_sql::http::SqlService::new(&bench.sql).open_to_everyone();
    let router: axum::Router = axum::Router::new().nest("/sql", service.into_router());
    let request = |path: &str| {
        let request = hyper::Request::get(path).body(axum::body::Body::empty());
        tower::ServiceExt::oneshot(router.clone(), request.expect("a request"))
    };
    for path in ["/sql", "/sql/v1/kinds", "/sql/v1/core/v1/ConfigMap"] {
        let response = request(path).await.expect("an answer");
        assert_eq!(response.status(), 200, "{path}");
    }
}

/// Browsers keep other responses on disk, in plain text.
#[tokio::test]
async fn responses_about_an_encrypted_kind_are_not_stored_by_clients() {
    let secrets = Schema::new(Gvk::new("", "v1", "Secret"), []).expect("a schema");
    let key = LocalKeys::from_bytes(&std::array::from_fn::<u8, 32, _>(|place| place as u8));
    let sealing = Sealing::of_kinds([], key.expect("a key"));
    let mut bench = Bench::with(|it| it, |sql| sql.kind(secrets).sealed(sealing)).await;
    let client = bench.open().await;
    let secret = json!({"metadata": {"name": "a"}, "stringData": {"password": "b"}});
    let secret: Secret = serde_json::from_value(secret).expect("a Secret");
    let api: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let created = api.create(&PostParams::default(), &secret).await;
    let version = created.expect("created").metadata.resource_version;
    let url = "/v1/core/v1/Secret";
    let revision = format!("revision={}", version.expect("a version"));
    client.get(&format!("{url}?{revision}")).await;
    // Of a list a client would keep a cursor, whose key may be dropped.
    for (path, status) in [(url.to_owned(), 200), (format!("{url}/default/a"), 304)] {
        let answer = client.get(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        assert_eq!(answer.header("cache-control"), "no-store");
        let again = client.with("if-none-match", answer.header("etag"));
        let again = again.get(&path).await;
        assert_eq!(
            (again.status, again.header("cache-control")),
            (status, "no-store")
        );
    }
    let maps = client.get(MAPS).await;
    assert_eq!(maps.header("cache-control"), "private, no-cache");
}
