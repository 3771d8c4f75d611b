//! What the server itself puts into a cluster, and what it reads of custom resources.

use http::Method;
use lariat_cluster::Cluster;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use crate::bench::{Answer, Bench, DEFINITIONS, text};
use crate::kinds::{WIDGETS, definition, widget};

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

pub(crate) async fn json(bench: &Bench, path: &str) -> Value {
    bench.get(path).await.json()
}

/// Starts a cluster that evaluates roles, and so has those of a real one.
async fn with_roles() -> Bench {
    let cluster = Cluster::builder().rbac().start().await;
    Bench {
        cluster: cluster.expect("it does not listen"),
    }
}

/// Waits until a path answers with a code.
pub(crate) async fn becomes(bench: &Bench, path: &str, code: u16) {
    for _ in 0..100 {
        if bench.get(path).await.code.as_u16() == code {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{path} never answers {code}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_begins_with_what_a_real_one_has() {
    let bench = with_roles().await;
    for (path, count) in [
        (SERVICES, 21),
        ("/api/v1/services", 1),
        ("/api/v1/endpoints", 1),
        ("/apis/discovery.k8s.io/v1/endpointslices", 1),
        ("/apis/networking.k8s.io/v1/servicecidrs", 1),
        ("/apis/networking.k8s.io/v1/ipaddresses", 1),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", 2),
        ("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", 11),
        (
            "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
            8,
        ),
        (&format!("{RBAC}/clusterroles"), 69),
        (&format!("{RBAC}/clusterrolebindings"), 50),
        ("/api/v1/componentstatuses", 3),
    ] {
        assert_eq!(bench.names(path).await.len(), count, "{path}");
    }
    let service = json(&bench, "/api/v1/namespaces/default/services/kubernetes").await;
    assert_eq!(text(&service, "/spec/clusterIP"), "10.96.0.1");
    let catalog = json(&bench, "/apis").await;
    let groups = catalog["groups"].as_array().unwrap().iter();
    let versions = groups.flat_map(|group| group["versions"].as_array().unwrap());
    let names: Vec<String> = versions
        .filter_map(|version| {
            let (group, version) = text(version, "/groupVersion").split_once('/')?;
            Some(format!("{version}.{group}"))
        })
        .filter(|name| name != "v1.apiregistration.k8s.io")
        .collect();
    let services = bench.names(SERVICES).await;
    assert!(
        names.iter().all(|name| services.contains(name)),
        "{names:?} {services:?}"
    );
    assert_eq!(names.len() + 1, services.len(), "and the core group");
}

#[tokio::test(start_paused = true)]
async fn group_versions_of_crds_have_api_services() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    for name in ["v1.demo.dev", "v2.demo.dev"] {
        let path = format!("{SERVICES}/{name}");
        becomes(&bench, &path, 200).await;
        let service = json(&bench, &path).await;
        assert_eq!(text(&service, "/status/conditions/0/reason"), "Local");
        assert_eq!(service["spec"]["groupPriorityMinimum"], 1000);
        assert_eq!(
            service["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"],
            "true"
        );
    }
    bench.delete(&format!("{SERVICES}/v1.demo.dev")).await;
    becomes(&bench, &format!("{SERVICES}/v1.demo.dev"), 200).await;
    let path = format!("{DEFINITIONS}/widgets.demo.dev");
    let patch = json!([{"op": "replace", "path": "/spec/versions/1/served", "value": false}]);
    bench.json_patch(&path, patch).await;
    becomes(&bench, &format!("{SERVICES}/v2.demo.dev"), 404).await;
    bench.delete(&path).await;
    becomes(&bench, &format!("{SERVICES}/v1.demo.dev"), 404).await;
    let own = json!({"metadata": {"name": "v1.demo.dev"}, "spec": {"group": "demo.dev", "version": "v1",
        "groupPriorityMinimum": 1, "versionPriority": 1, "service": {"name": "a", "namespace": "b"}}});
    bench.post(SERVICES, &own).await;
    bench.config_map("later", json!({})).await;
    becomes(&bench, &format!("{SERVICES}/v1.demo.dev"), 200).await;
}

#[tokio::test(start_paused = true)]
async fn the_scale_of_a_custom_resource_without_replicas_can_be_set() {
    let bench = Bench::new().await;
    let mut scaled = definition("widgets", "Widget", "Namespaced");
    scaled["spec"]["versions"][0]["subresources"]["scale"] = json!({
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
    });
    bench.define(&scaled).await;
    let path = format!("{WIDGETS}/a/scale");
    for (method, media, body, code, replicas) in writes_of_scale() {
        bench.delete(&format!("{WIDGETS}/a")).await;
        bench.post(WIDGETS, &widget("a")).await;
        let path = format!("{path}?fieldManager=m");
        let answer = bench.call(method.clone(), &path, media, body).await;
        assert_eq!(
            answer.code.as_u16(),
            code,
            "{method} {media} {body}: {}",
            answer.text
        );
        let stored = json(&bench, &format!("{WIDGETS}/a")).await;
        let owners = stored["metadata"]["managedFields"].to_string();
        assert!(!owners.contains("replicas"), "they have no owner: {owners}");
        assert_eq!(
            stored["spec"]["replicas"], replicas,
            "{method} {media} {body}"
        );
        if code == 200 {
            let shown = answer.json()["spec"]["replicas"].clone();
            assert_eq!(
                shown.as_i64().unwrap_or(0),
                replicas.as_i64().unwrap(),
                "{body}"
            );
        }
    }
}

/// Method, media type and body of a write to `/scale`; the code of its answer, and the replicas that are stored then.
fn writes_of_scale() -> [(Method, &'static str, &'static str, u16, Value); 9] {
    let json_patch = "application/json-patch+json";
    let merge = "application/merge-patch+json";
    let strategic = "application/strategic-merge-patch+json";
    let apply = "application/apply-patch+yaml";
    let whole = r#"{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a"},"spec":{"replicas":3}}"#;
    let add = r#"[{"op":"add","path":"/spec/replicas","value":4}]"#;
    let replace = r#"[{"op":"replace","path":"/spec/replicas","value":4}]"#;
    let (three, none) = (r#"{"spec":{"replicas":3}}"#, r#"{"spec":{"replicas":0}}"#);
    [
        (Method::GET, "", "", 500, json!(null)),
        (Method::PUT, "application/json", whole, 200, json!(3)),
        (Method::PATCH, merge, three, 200, json!(3)),
        (Method::PATCH, merge, none, 200, json!(0)),
        (Method::PATCH, merge, "{}", 400, json!(null)),
        (Method::PATCH, json_patch, add, 200, json!(4)),
        (Method::PATCH, json_patch, replace, 200, json!(4)),
        (Method::PATCH, strategic, three, 415, json!(null)),
        (Method::PATCH, apply, whole, 500, json!(null)),
    ]
}

#[tokio::test(start_paused = true)]
async fn nulls_in_the_metadata_of_custom_resources_are_empty_texts() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let mut object = widget("a");
    object["metadata"]["labels"] = json!({"x": null});
    object["metadata"]["annotations"] = json!({"y": null, "z": "1"});
    let path = format!("{WIDGETS}/a?fieldManager=m");
    let check = |answer: &Answer| {
        let metadata = &answer.json()["metadata"];
        assert_eq!(metadata["labels"], json!({"x": ""}), "{}", answer.text);
        assert_eq!(metadata["annotations"]["y"], json!(""), "{}", answer.text);
    };
    check(&bench.post(WIDGETS, &object).await);
    check(
        &bench
            .put(&path, &{
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] =
                    json(&bench, &path).await["metadata"]["resourceVersion"].clone();
                object
            })
            .await,
    );
    let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"x": null}}]);
    check(&bench.json_patch(&path, patch).await);
    bench.delete(&path).await;
    let apply = "application/apply-patch+yaml";
    check(
        &bench
            .call(Method::PATCH, &path, apply, object.to_string())
            .await,
    );
    object["metadata"]["labels"] = json!({"": null});
    bench.post(WIDGETS, &object).await.fails(422, "Invalid");
}

#[tokio::test(start_paused = true)]
async fn a_role_with_an_aggregation_rule_has_the_rules_of_others() {
    let bench = with_roles().await;
    let rules = json!([{"apiGroups": ["demo.dev"], "resources": ["widgets"], "verbs": ["get"]}]);
    let label = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    let role = json!({"metadata": {"name": "widgets", "labels": label}, "rules": rules});
    bench.post(&format!("{RBAC}/clusterroles"), &role).await;
    sleep(Duration::from_secs(1)).await;
    for name in ["view", "edit", "admin"] {
        let role = json(&bench, &format!("{RBAC}/clusterroles/{name}")).await;
        let all = role["rules"].as_array().unwrap();
        assert!(all.contains(&rules[0]), "{name}: {role:#}");
    }
}
