//! Discovery and OpenAPI.

use crate::bench::{Bench, CONFIG_MAPS, text};
use crate::kinds::definition;
use http::{Method, StatusCode};
use serde_json::{Value, json};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

fn member<'a>(list: &'a Value, key: &str, value: &str) -> &'a Value {
    let mut elements = list.as_array().into_iter().flatten();
    let found = elements.find(|each| each.pointer(key) == Some(&value.into()));
    found.unwrap_or_else(|| panic!("no {value} in {list:#}"))
}

#[tokio::test(start_paused = true)]
async fn subresources_are_listed_with_kinds_and_verbs_of_their_own() {
    let bench = Bench::new().await;
    let core = bench.get("/api/v1").await.json();
    let resource = |name: &str| member(&core["resources"], "/name", name).clone();
    assert_eq!(resource("pods/eviction")["group"], "policy");
    assert_eq!(resource("serviceaccounts/token")["kind"], "TokenRequest");
    assert_eq!(resource("namespaces/finalize")["verbs"], json!(["update"]));
    assert_eq!(resource("bindings")["verbs"], json!(["create"]));
    assert_eq!(resource("pods/log")["verbs"], json!(["get"]));
    let apps = bench.get("/apis/apps/v1").await;
    // As kube-apiserver says with all its answers.
    assert_eq!(apps.headers["cache-control"], "no-cache, private");
    let apps = apps.json();
    let scale = member(&apps["resources"], "/name", "deployments/scale");
    assert_eq!(
        (text(scale, "/group"), text(scale, "/version")),
        ("autoscaling", "v1")
    );
}

#[tokio::test(start_paused = true)]
async fn groups_come_in_the_order_in_which_clients_prefer_them() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let groups = bench.get("/apis").await.json();
    let names: Vec<&str> = groups["groups"]
        .as_array()
        .expect("there are groups")
        .iter()
        .map(|group| text(group, "/name"))
        .collect();
    assert_eq!(
        names[..3],
        ["apiregistration.k8s.io", "apps", "events.k8s.io"]
    );
    assert_eq!(names.last(), Some(&"demo.dev"));
    let autoscaling = member(&groups["groups"], "/name", "autoscaling");
    assert_eq!(text(autoscaling, "/preferredVersion/version"), "v2");
}

#[tokio::test(start_paused = true)]
async fn aggregated_discovery_has_a_tag_that_changes_with_the_definitions() {
    let bench = Bench::new().await;
    let accept = ("accept", AGGREGATED);
    let first = bench.ask(Method::GET, "/apis", &[accept], "").await;
    let content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    assert_eq!(first.headers["content-type"], content_type);
    assert_eq!(first.headers["vary"], "Accept");
    let tag = first.headers["etag"]
        .to_str()
        .expect("a tag is a text")
        .to_owned();
    let known = [accept, ("if-none-match", tag.as_str())];
    let again = bench.ask(Method::GET, "/apis", &known, "").await;
    assert_eq!(
        (again.code, again.text.as_str()),
        (StatusCode::NOT_MODIFIED, "")
    );

    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let changed = bench.ask(Method::GET, "/apis", &known, "").await.json();
    let group = member(&changed["items"], "/metadata/name", "demo.dev");
    assert_eq!(text(group, "/versions/0/version"), "v2");
    let kind = json!({"group": "demo.dev", "version": "v2", "kind": "Widget"});
    assert_eq!(group["versions"][0]["resources"][0]["responseKind"], kind);

    let older = AGGREGATED.replace("v=v2;", "v=v9;");
    let older = bench
        .ask(Method::GET, "/api", &[("accept", &older)], "")
        .await;
    assert_eq!(older.json()["kind"], "APIVersions");
    let removed = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    let removed = bench
        .ask(Method::GET, "/apis", &[("accept", removed)], "")
        .await;
    removed.fails(406, "NotAcceptable");
    assert_eq!(bench.get("/api").await.json()["kind"], "APIVersions");
}

#[tokio::test(start_paused = true)]
async fn a_custom_kind_is_explained_by_its_schema() {
    let bench = Bench::new().await;
    let before = bench.get("/openapi/v3").await;
    let mut definition = definition("widgets", "Widget", "Namespaced");
    let size = json!({"type": "integer", "description": "How big."});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
        json!({"spec": {"type": "object", "properties": {"size": size}}});
    bench.define(&definition).await;
    let index = bench.get("/openapi/v3").await;
    assert_ne!(before.text, index.text);
    let index = index.json();
    let url = text(&index, "/paths/apis~1demo.dev~1v1/serverRelativeURL");
    let document = bench.get(url).await.json();
    let schema = &document["components"]["schemas"]["dev.demo.v1.Widget"];
    assert_eq!(schema["properties"]["spec"]["properties"]["size"], size);
    let kind = json!([{"group": "demo.dev", "version": "v1", "kind": "Widget"}]);
    assert_eq!(schema["x-kubernetes-group-version-kind"], kind);
    let list = &document["components"]["schemas"]["dev.demo.v1.WidgetList"];
    assert_eq!(list["required"], json!(["items"]));
    let path = "/apis/demo.dev/v1/namespaces/{namespace}/widgets/{name}";
    let patch = &document["paths"][path]["patch"];
    member(&patch["parameters"], "/name", "fieldValidation");
    assert_eq!(
        bench.get("/openapi/v3/apis/none/v1").await.code,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test(start_paused = true)]
async fn one_document_describes_all_kinds_as_long_as_they_are_served() {
    let bench = Bench::new().await;
    let before = bench.get("/openapi/v2").await;
    let tag = before.headers["etag"].to_str().unwrap();
    let known = [("if-none-match", tag)];
    let again = bench.ask(Method::GET, "/openapi/v2", &known, "").await;
    assert_eq!(again.code, StatusCode::NOT_MODIFIED);
    let before = before.json();
    assert_eq!(before["swagger"], "2.0");
    let port = &before["definitions"]["io.k8s.api.core.v1.ContainerPort"]["properties"];
    assert_eq!(port["protocol"]["enum"], json!(["SCTP", "TCP", "UDP"]));
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale";
    let scaled = &before["paths"][path]["get"]["x-kubernetes-group-version-kind"];
    assert_eq!(scaled["group"], "autoscaling");

    bench
        .define(&definition("widgets", "Widget", "Cluster"))
        .await;
    let defined = bench.ask(Method::GET, "/openapi/v2", &known, "").await;
    assert!(defined.json()["definitions"]["dev.demo.v1.Widget"].is_object());
    let accept = [(
        "accept",
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    )];
    let message = bench.ask(Method::GET, "/openapi/v2", &accept, "").await;
    let content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    assert_eq!(message.headers["content-type"], content_type);
    let html = [("accept", "text/html")];
    for path in ["/openapi/v2", "/openapi/v3/api/v1"] {
        let refused = bench.ask(Method::GET, path, &html, "").await;
        assert_eq!(refused.code, StatusCode::NOT_ACCEPTABLE, "{path}");
    }
}

/// Returns a path in the document of version 2.
fn path<'a>(document: &'a Value, path: &str) -> &'a Value {
    document["paths"]
        .get(path)
        .unwrap_or_else(|| panic!("there is no {path}"))
}

/// What clients may send and get, as a genuine server describes it.
#[tokio::test(start_paused = true)]
async fn an_operation_is_described_by_media_types_and_codes() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Cluster"))
        .await;
    let document = bench.get("/openapi/v2").await.json();
    let any: &[&str] = &["*/*"];
    let text: &[&str] = &["json", "yaml"];
    let all: &[&str] = &["json", "yaml", "vnd.kubernetes.protobuf"];
    let watched = [
        all,
        &["json;stream=watch", "vnd.kubernetes.protobuf;stream=watch"],
    ]
    .concat();
    let patches: &[&str] = &["json-patch+json", "merge-patch+json"];
    let strategic = [patches, &["strategic-merge-patch+json", "apply-patch+yaml"]].concat();
    let patches = [patches, &["apply-patch+yaml"]].concat();
    let widgets = "/apis/demo.dev/v1/widgets";
    let pods = "/api/v1/namespaces/{namespace}/pods";
    for (at, method, consumes, produces, codes) in [
        (pods, "get", any, &*watched, "200 401"),
        (pods, "delete", any, all, "200 401"),
        ("/api/v1/watch/pods", "get", any, &watched, "200 401"),
        (
            &format!("{pods}/{{name}}"),
            "patch",
            &strategic,
            all,
            "200 201 401",
        ),
        (
            &format!("{pods}/{{name}}"),
            "delete",
            any,
            all,
            "200 202 401",
        ),
        (widgets, "get", text, text, "200 401"),
        (widgets, "delete", text, text, "200 401"),
        (
            &format!("{widgets}/{{name}}"),
            "put",
            text,
            text,
            "200 201 401",
        ),
        (
            &format!("{widgets}/{{name}}"),
            "patch",
            &patches,
            text,
            "200 401",
        ),
        ("/api/", "get", all, all, "200 401"),
        ("/version/", "get", &["json"], &["json"], "200 401"),
    ] {
        let operation = &path(&document, at)[method];
        let types = |types: &[&str]| -> Value {
            let types = types
                .iter()
                .filter(|each| cfg!(feature = "protobuf") || !each.contains("protobuf"));
            types
                .map(|each| {
                    each.strip_prefix("*")
                        .map_or(format!("application/{each}"), |_| "*/*".into())
                })
                .collect()
        };
        assert_eq!(operation["consumes"], types(consumes), "{method} {at}");
        assert_eq!(operation["produces"], types(produces), "{method} {at}");
        let answers = operation["responses"].as_object().unwrap();
        let mut answers: Vec<&str> = answers.keys().map(String::as_str).collect();
        answers.sort_unstable();
        assert_eq!(answers.join(" "), codes, "{method} {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_operations_that_there_are_are_described() {
    let bench = Bench::new().await;
    let document = bench.get("/openapi/v2").await.json();
    for at in [
        "/api/v1/componentstatuses",
        "/api/v1/componentstatuses/{name}",
    ] {
        let methods = path(&document, at).as_object().unwrap().keys();
        let methods: Vec<&String> = methods.filter(|key| *key != "parameters").collect();
        assert_eq!(methods, ["get"], "{at}");
    }
    assert_eq!(
        document["paths"]["/api/v1/watch/componentstatuses"],
        json!(null)
    );
    let deleted = &path(&document, "/api/v1/namespaces/{name}")["delete"]["responses"]["200"];
    assert_eq!(
        deleted["schema"]["$ref"],
        "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Status"
    );
    // A genuine server has 13 and 24.
    for (group, count) in [("authentication", 13), ("authorization", 24)] {
        let document = bench
            .get(&format!("/openapi/v3/apis/{group}.k8s.io/v1"))
            .await;
        let schemas = document.json()["components"]["schemas"].clone();
        assert_eq!(schemas.as_object().unwrap().len(), count, "{schemas}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_document_is_kept_under_its_digest() {
    let bench = Bench::new().await;
    let index = bench.get("/openapi/v3").await.json();
    for path in ["api", "apis", "version", "apis/apps", "apis/apps/v1"] {
        let url = index["paths"][path]["serverRelativeURL"].as_str().unwrap();
        let found = bench.get(url).await;
        assert_eq!(
            found.headers["cache-control"], "public, immutable",
            "{path}"
        );
        let paths = found.json()["paths"].clone();
        assert!(paths[format!("/{path}/")]["get"].is_object(), "{path}");
        let outdated = bench.get(&format!("/openapi/v3/{path}?hash=1")).await;
        assert_eq!(outdated.code, StatusCode::MOVED_PERMANENTLY, "{path}");
        assert_eq!(outdated.headers["location"], url);
    }
}

#[tokio::test(start_paused = true)]
async fn a_built_in_kind_is_explained_by_its_type() {
    let bench = Bench::new().await;
    let document = bench.get("/openapi/v3/api/v1").await;
    let tag = document.headers["etag"].to_str().unwrap();
    let index = bench.get("/openapi/v3").await.json();
    let url = text(&index, "/paths/api~1v1/serverRelativeURL");
    assert_eq!(
        url,
        format!("/openapi/v3/api/v1?hash={}", tag.trim_matches('"'))
    );
    let document = document.json();
    let schemas = &document["components"]["schemas"];
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    let path = "/api/v1/namespaces/{namespace}/pods/{name}";
    let patch = &document["paths"][path]["patch"];
    let strategic = "application/strategic-merge-patch+json";
    assert!(patch["requestBody"]["content"][strategic].is_object());
    let answered = &document["paths"][path]["get"]["responses"]["200"];
    let reference = "#/components/schemas/io.k8s.api.core.v1.Pod";
    assert_eq!(
        answered["content"]["application/json"]["schema"]["$ref"],
        reference
    );
}

#[tokio::test(start_paused = true)]
async fn health_lists_its_checks_on_request() {
    let bench = Bench::new().await;
    assert_eq!(bench.get("/livez").await.text, "ok");
    let verbose = bench.get("/readyz?verbose").await.text;
    assert!(verbose.starts_with("[+]ping ok\n"), "{verbose}");
    assert!(verbose.ends_with("readyz check passed\n"), "{verbose}");
    let excluding = "/livez?verbose&exclude=ping&exclude=b&exclude=a";
    let excluding = bench.get(excluding).await.text;
    assert!(excluding.starts_with("[+]ping excluded: ok\n[+]log ok\n"));
    let warning = "warn: some health checks cannot be excluded: no matches for \"a\",\"b\"";
    assert!(
        excluding.ends_with(&format!("{warning}\nlivez check passed\n")),
        "{excluding}"
    );
    assert_eq!(bench.get("/healthz/ping").await.text, "ok");
    assert_eq!(bench.get("/healthz/none").await.code, StatusCode::NOT_FOUND);
    let paths = bench.get("/").await.json();
    assert!(
        paths["paths"]
            .as_array()
            .is_some_and(|all| all.contains(&json!("/apis/apps/v1")))
    );
    bench.config_map("a", json!({})).await;
    let metrics = bench.get("/metrics").await.text;
    let line = "apiserver_storage_objects{resource=\"configmaps\"} 1\n";
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn watches_can_be_asked_for_by_path() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    bench.config_map("b", json!({})).await;
    let path = CONFIG_MAPS.replace("/api/v1", "/api/v1/watch");
    assert_eq!(
        bench.watch(&path).await.shorts(2).await,
        ["ADDED a", "ADDED b"]
    );
    assert_eq!(
        bench.watch(&format!("{path}/b")).await.short().await,
        "ADDED b"
    );
    assert_eq!(bench.cluster.journal().count("watch", "configmaps"), 2);
}

#[tokio::test(start_paused = true)]
async fn media_types_that_are_none_are_refused_where_a_genuine_server_does() {
    const OBJECTS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    const WATCHES: &str =
        "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let ask = async |path: &str, accept: &str| {
        bench
            .ask(Method::GET, path, &[("accept", accept)], "")
            .await
    };
    let routed = |all: &str| format!("406: Not Acceptable\n\nAvailable representations: {all}");
    let listed = |all: &str| format!("only the following media types are accepted: {all}");
    for (path, message) in [
        ("/api", routed(OBJECTS)),
        ("/apis", listed(OBJECTS)),
        ("/apis/apps", listed(OBJECTS)),
        ("/apis/apps/v1", routed(OBJECTS)),
        ("/apis/demo.dev/v2", listed(OBJECTS)),
        (
            "/api/v1/namespaces",
            routed(&format!("{OBJECTS}, {WATCHES}")),
        ),
        ("/api/v1/namespaces/default", routed(OBJECTS)),
        ("/apis/demo.dev/v2/widgets", listed(OBJECTS)),
    ] {
        let refused = ask(path, "text/html").await.fails(406, "NotAcceptable");
        assert_eq!(refused["message"], message, "{path}");
    }
    for path in [
        "/api/v1/namespaces?watch=1",
        "/apis/demo.dev/v2/widgets?watch=1",
    ] {
        let refused = ask(path, "application/yaml").await;
        assert_eq!(refused.code, StatusCode::NOT_ACCEPTABLE);
        assert!(refused.text.contains(WATCHES), "{}", refused.text);
    }
    assert_eq!(ask("/", "text/html").await.code, StatusCode::OK);
    assert_eq!(ask("/metrics", "text/html").await.code, StatusCode::OK);
    let none = ask("/none", "text/html").await;
    assert_eq!(none.code, StatusCode::NOT_FOUND);
}
