//! Namespaces and CustomResourceDefinitions.

use crate::bench::{Bench, DEFINITIONS, text, version};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

pub(crate) fn definition(plural: &str, kind: &str, scope: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let one = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "schema": schema,
            "subresources": {"status": {}},
        })
    };
    json!({
        "metadata": {"name": format!("{plural}.demo.dev")},
        "spec": {
            "group": "demo.dev", "scope": scope, "names": {"plural": plural, "kind": kind},
            "versions": [one("v1", true), one("v2", false)],
        },
    })
}

pub(crate) const WIDGETS: &str = "/apis/demo.dev/v1/namespaces/default/widgets";

pub(crate) fn widget(name: &str) -> Value {
    let metadata = json!({"name": name});
    json!({"apiVersion": "demo.dev/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": 1}})
}

async fn gone(bench: &Bench, path: &str) -> bool {
    for _ in 0..100 {
        if bench.get(path).await.code == StatusCode::NOT_FOUND {
            return true;
        }
        sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn a_definition_makes_its_kind_served() {
    let bench = Bench::new().await;
    assert_eq!(
        bench.get("/apis/demo.dev/v1").await.text,
        "404 page not found\n"
    );
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;

    let created = bench.post(WIDGETS, &widget("a")).await.json();
    assert_eq!(
        (text(&created, "/kind"), &created["metadata"]["generation"]),
        ("Widget", &json!(1))
    );
    let list = bench.get(WIDGETS).await.json();
    assert_eq!(
        (text(&list, "/kind"), text(&list, "/metadata/continue")),
        ("WidgetList", "")
    );
    assert_eq!(
        list["items"][0]["kind"], "Widget",
        "custom items carry their type"
    );
    let resources = bench.get("/apis/demo.dev/v1").await.json();
    assert_eq!(resources["resources"][0]["singularName"], "widget");
    assert_eq!(
        bench.get("/apis/demo.dev").await.json()["preferredVersion"]["version"],
        "v2"
    );
}

#[tokio::test(start_paused = true)]
async fn a_definition_goes_through_its_conditions_in_order() {
    let bench = Bench::new().await;
    let mut watch = bench.watch(&format!("{DEFINITIONS}?watch=1")).await;
    bench
        .post(DEFINITIONS, &definition("widgets", "Widget", "Namespaced"))
        .await;
    let mut reasons = Vec::new();
    for _ in 0..3 {
        let (_, object) = watch.event().await;
        let conditions = object["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let reason = |c: &Value| text(c, "/reason").to_owned();
        reasons.push(conditions.iter().map(reason).collect::<Vec<_>>().join(" "));
    }
    assert_eq!(
        reasons,
        [
            "",
            "NoConflicts Installing",
            "NoConflicts InitialNamesAccepted"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_versions_of_a_kind_show_the_same_objects() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let mut watch = bench.watch("/apis/demo.dev/v2/widgets?watch=1").await;
    let first = bench.post(WIDGETS, &widget("a")).await.json();
    let other = bench
        .get("/apis/demo.dev/v2/namespaces/default/widgets/a")
        .await
        .json();
    assert_eq!(other["apiVersion"], "demo.dev/v2");
    assert_eq!(
        (&other["spec"], version(&other)),
        (&first["spec"], version(&first))
    );
    let (event, object) = watch.event().await;
    assert_eq!(
        (&*event, &object["apiVersion"]),
        ("ADDED", &json!("demo.dev/v2"))
    );
    let list = bench.get("/apis/demo.dev/v2/widgets").await.json();
    assert_eq!(list["items"][0]["apiVersion"], "demo.dev/v2");
}

#[tokio::test(start_paused = true)]
async fn custom_objects_must_say_what_they_are() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let mut object = widget("a");
    object["kind"] = "Gadget".into();
    bench.post(WIDGETS, &object).await.fails(422, "Invalid");
    object["apiVersion"] = "demo.dev/v9".into();
    bench.post(WIDGETS, &object).await.fails(400, "BadRequest");
    bench
        .post(WIDGETS, &json!({"metadata": {"name": "a"}}))
        .await
        .fails(400, "BadRequest");
    bench.post(WIDGETS, &widget("a")).await;
    bench
        .put(&format!("{WIDGETS}/a"), &widget("a"))
        .await
        .fails(422, "Invalid");
    bench
        .get(&format!("{WIDGETS}/a/nosub"))
        .await
        .fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_kind_has_no_namespaces() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Cluster"))
        .await;
    let mut object = widget("a");
    object["metadata"]["namespace"] = "default".into();
    let created = bench
        .post("/apis/demo.dev/v1/widgets", &object)
        .await
        .json();
    assert!(created["metadata"]["namespace"].is_null());
    assert_eq!(
        bench.post(WIDGETS, &object).await.text,
        "404 page not found\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_taken_name_is_not_accepted_until_it_is_free() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    bench
        .post(DEFINITIONS, &definition("things", "Widget", "Namespaced"))
        .await;
    let path = format!("{DEFINITIONS}/things.demo.dev");
    sleep(Duration::from_millis(100)).await;
    let refused = bench.get(&path).await.json();
    let condition = &refused["status"]["conditions"][0];
    assert_eq!(condition["reason"], "ListKindConflict");
    assert_eq!(condition["message"], "\"WidgetList\" is already in use");
    assert_eq!(
        bench.get("/apis/demo.dev/v1/things").await.code,
        StatusCode::NOT_FOUND
    );

    bench
        .delete(&format!("{DEFINITIONS}/widgets.demo.dev"))
        .await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(
        bench.get("/apis/demo.dev/v1/things").await.code,
        StatusCode::OK
    );
}

#[tokio::test(start_paused = true)]
async fn malformed_definitions_are_refused_by_field() {
    let bench = Bench::new().await;
    let good = definition("widgets", "Widget", "Namespaced");
    let check = async |pointer: &str, value: Value, field: &str| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        let status = bench.post(DEFINITIONS, &bad).await.fails(422, "Invalid");
        let causes = status["details"]["causes"].as_array().unwrap();
        assert!(
            causes.iter().any(|cause| cause["field"] == field),
            "{status:#}"
        );
    };
    check("/metadata/name", json!("other.demo.dev"), "metadata.name").await;
    check("/spec/scope", json!("Galaxy"), "spec.scope").await;
    check("/spec/group", json!("nodot"), "spec.group").await;
    check("/spec/versions/1/storage", json!(true), "spec.versions").await;
    check(
        "/spec/versions/0/schema",
        json!(null),
        "spec.versions[0].schema.openAPIV3Schema",
    )
    .await;
    check("/spec/names/kind", json!(""), "spec.names.kind").await;

    bench.define(&good).await;
    let path = format!("{DEFINITIONS}/widgets.demo.dev");
    bench
        .merge(&path, json!({"spec": {"scope": "Cluster"}}))
        .await
        .fails(422, "Invalid");
}

#[tokio::test(start_paused = true)]
async fn deleting_a_definition_deletes_its_objects_first() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    bench.post(WIDGETS, &widget("free")).await;
    let mut held = widget("held");
    held["metadata"]["finalizers"] = json!(["demo.dev/hold"]);
    bench.post(WIDGETS, &held).await;
    let mut watch = bench.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(watch.shorts(2).await, ["ADDED free", "ADDED held"]);

    bench
        .delete(&format!("{DEFINITIONS}/widgets.demo.dev"))
        .await;
    assert_eq!(watch.shorts(2).await, ["DELETED free", "MODIFIED held"]);
    bench
        .post(WIDGETS, &widget("late"))
        .await
        .fails(403, "Forbidden");
    bench
        .merge(
            &format!("{WIDGETS}/held"),
            json!({"metadata": {"finalizers": null}}),
        )
        .await;
    assert_eq!(watch.short().await, "DELETED held");
    assert!(gone(&bench, &format!("{DEFINITIONS}/widgets.demo.dev")).await);
    assert_eq!(
        watch.line().await.unwrap(),
        None,
        "the watch of a kind that is gone ends"
    );
    assert_eq!(bench.get(WIDGETS).await.text, "404 page not found\n");

    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    assert!(bench.names(WIDGETS).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_labelled_and_active() {
    let bench = Bench::new().await;
    let sent = json!({"metadata": {"name": "shop", "labels": {"team": "a"}}});
    let created = bench.post("/api/v1/namespaces", &sent).await.json();
    let labels = json!({"kubernetes.io/metadata.name": "shop", "team": "a"});
    assert_eq!(created["metadata"]["labels"], labels);
    assert_eq!(created["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(created["status"]["phase"], "Active");
    bench
        .post("/api/v1/namespaces", &sent)
        .await
        .fails(409, "AlreadyExists");
    for name in ["default", "kube-system"] {
        bench
            .delete(&format!("/api/v1/namespaces/{name}"))
            .await
            .fails(403, "Forbidden");
    }
}

#[tokio::test(start_paused = true)]
async fn deleting_a_namespace_takes_everything_in_it_along() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    bench
        .post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}}))
        .await;
    let config_maps = "/api/v1/namespaces/shop/configmaps";
    let held = json!({"metadata": {"name": "held", "finalizers": ["demo.dev/hold"]}});
    bench.post(config_maps, &held).await;
    bench
        .post(config_maps, &json!({"metadata": {"name": "free"}}))
        .await;
    bench
        .post("/apis/demo.dev/v1/namespaces/shop/widgets", &widget("w"))
        .await;

    let marked = bench.delete("/api/v1/namespaces/shop").await.json();
    assert_eq!(marked["status"]["phase"], "Terminating");
    let status = bench
        .post(config_maps, &json!({"metadata": {"name": "late"}}))
        .await;
    let status = status.fails(403, "Forbidden");
    assert_eq!(
        status["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.names(config_maps).await, ["held"]);
    assert!(
        bench
            .names("/apis/demo.dev/v1/namespaces/shop/widgets")
            .await
            .is_empty()
    );

    bench
        .merge(
            &format!("{config_maps}/held"),
            json!({"metadata": {"finalizers": null}}),
        )
        .await;
    assert!(gone(&bench, "/api/v1/namespaces/shop").await);
    let late = bench
        .post(config_maps, &json!({"metadata": {"name": "late"}}))
        .await;
    late.fails(404, "NotFound");
}
