//! Scales, bindings and evictions: what their bodies have to be.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::bench::{Answer, Bench, text};
use crate::kinds::{WIDGETS, definition, widget};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn pod(name: &str) -> Value {
    let spec = json!({"restartPolicy": "", "containers": [{"name": "c", "image": "i"}]});
    json!({"metadata": {"name": name, "labels": {"app": "a"}}, "spec": spec})
}

fn deployment() -> Value {
    let template = json!({"metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec =
        json!({"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template});
    json!({"metadata": {"name": "a"}, "spec": spec})
}

async fn apply_scale(bench: &Bench, metadata: Value, spec: Value) -> Answer {
    let scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": spec});
    let path = format!("{DEPLOYMENTS}/a/scale?fieldManager=m&force=true");
    let media = "application/apply-patch+yaml";
    bench
        .call(Method::PATCH, &path, media, scale.to_string())
        .await
}

#[tokio::test(start_paused = true)]
async fn an_applied_scale_is_a_scale() {
    let bench = Bench::new().await;
    let created = bench.post(DEPLOYMENTS, &deployment()).await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    let none = json!({});
    let wrong = apply_scale(&bench, none.clone(), json!({"replicas": "x"})).await;
    let status = wrong.fails(500, "");
    let message = text(&status, "/message");
    assert!(
        message.contains("failed to create typed patch object"),
        "{message}"
    );
    assert!(message.contains("autoscaling/v1, Kind=Scale"), "{message}");
    let below = apply_scale(&bench, none.clone(), json!({"replicas": -1})).await;
    below.fails(422, "Invalid");
    let (uid, version) = (json!({"uid": "x"}), json!({"resourceVersion": "1"}));
    for other in [uid.clone(), version] {
        let refused = apply_scale(&bench, other, json!({"replicas": 3})).await;
        refused.fails(409, "Conflict");
    }
    let nothing = apply_scale(&bench, none.clone(), none).await;
    assert_eq!(nothing.json()["spec"]["replicas"], 2, "{}", nothing.text);
    let put = json!({"metadata": {"name": "a", "uid": "x"}, "spec": {"replicas": 1}});
    let put = bench.put(&format!("{DEPLOYMENTS}/a/scale"), &put).await;
    put.fails(409, "Conflict");
}

#[tokio::test(start_paused = true)]
async fn annotations_of_a_status_raise_no_generation() {
    let bench = Bench::new().await;
    bench.post(DEPLOYMENTS, &deployment()).await;
    let path = format!("{DEPLOYMENTS}/a");
    let patch = json!({"metadata": {"annotations": {"a": "1"}}});
    let status = bench.merge(&format!("{path}/status"), patch).await.json();
    assert_eq!(status["metadata"]["annotations"]["a"], "1");
    assert_eq!(status["metadata"]["generation"], 1);
}

#[tokio::test(start_paused = true)]
async fn bindings_and_evictions_have_types_and_preconditions() {
    let bench = Bench::new().await;
    let created = bench.post(PODS, &pod("a")).await.json();
    assert_eq!(created["spec"]["restartPolicy"], "Always");
    let binding = |mut metadata: Value| {
        metadata["name"] = "a".into();
        json!({"metadata": metadata, "target": {"name": "n"}})
    };
    let path = format!("{PODS}/a/binding");
    let untyped = bench.post(&path, &json!({"target": {"name": 7}})).await;
    untyped.fails(400, "BadRequest");
    for other in [
        json!({"name": "a", "uid": "x"}),
        json!({"name": "a", "resourceVersion": "1"}),
    ] {
        bench
            .post(&path, &binding(other))
            .await
            .fails(409, "Conflict");
    }
    let path = format!("{PODS}/a/eviction");
    let eviction = |options: Value| json!({"metadata": {"name": "a"}, "deleteOptions": options});
    for (options, code, reason) in [
        (json!({"gracePeriodSeconds": "x"}), 400, "BadRequest"),
        (json!({"dryRun": ["Some"]}), 422, "Invalid"),
        (json!({"propagationPolicy": "Never"}), 422, "Invalid"),
        (json!({"preconditions": {"uid": "x"}}), 409, "Conflict"),
    ] {
        bench
            .post(&path, &eviction(options))
            .await
            .fails(code, reason);
    }
    let tried = bench
        .post(&path, &eviction(json!({"dryRun": ["All"]})))
        .await;
    assert_eq!(tried.code, StatusCode::CREATED, "{}", tried.text);
    assert_eq!(bench.get(&format!("{PODS}/a")).await.code, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_changed_budget_allows_nothing_until_it_is_observed() {
    let bench = Bench::new().await;
    bench.post(PODS, &pod("a")).await;
    let running = json!({"status": {"phase": "Running"}});
    bench.merge(&format!("{PODS}/a/status"), running).await;
    let budgets = BUDGETS;
    let spec = json!({"minAvailable": 0, "selector": {"matchLabels": {"app": "a"}}});
    let budget = json!({"metadata": {"name": "b"}, "spec": spec});
    let created = bench.post(budgets, &budget).await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    let observe = |generation: i32| json!({"status": {"disruptionsAllowed": 1, "observedGeneration": generation}});
    let path = format!("{PODS}/a/eviction");
    let eviction = json!({"metadata": {"name": "a"}});
    bench
        .merge(&format!("{budgets}/b/status"), observe(0))
        .await;
    let refused = bench.post(&path, &eviction).await;
    let status = refused.fails(429, "TooManyRequests");
    assert!(
        status.to_string().contains("still being processed"),
        "{status:#}"
    );
    bench
        .merge(&format!("{budgets}/b/status"), observe(1))
        .await;
    let mut watch = bench.watch(&format!("{PODS}?watch=1")).await;
    watch.event().await;
    let evicted = bench.post(&path, &eviction).await;
    assert_eq!(evicted.code, StatusCode::CREATED, "{}", evicted.text);
    let (event, pod) = watch.event().await;
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    let reasons: Vec<&Value> = conditions.iter().map(|each| &each["reason"]).collect();
    assert!(
        reasons.contains(&&json!("EvictionByEvictionAPI")),
        "{event} {pod:#}"
    );
}

#[tokio::test(start_paused = true)]
async fn replicas_have_the_owners_that_a_scale_leaves_them() {
    let bench = Bench::new().await;
    bench.post(DEPLOYMENTS, &deployment()).await;
    let path = format!("{DEPLOYMENTS}/a");
    // Who owns the replicas: subresource, and whether with a time.
    let owners = || async {
        let deployment = bench.get(&path).await.json();
        let entries = deployment["metadata"]["managedFields"].as_array().unwrap();
        let owns = |entry: &&Value| !entry["fieldsV1"]["f:spec"]["f:replicas"].is_null();
        let shown = |entry: &Value| (entry["subresource"].clone(), entry["time"].is_string());
        entries.iter().filter(owns).map(shown).collect::<Vec<_>>()
    };
    let scale = |replicas: Value| {
        bench.merge(
            "/apis/apps/v1/namespaces/default/deployments/a/scale",
            json!({"spec": replicas}),
        )
    };
    assert_eq!(owners().await, [(Value::Null, true)]);
    scale(json!({"replicas": 3})).await;
    assert_eq!(owners().await, [(json!("scale"), false)]);
    scale(json!({"replicas": 0})).await;
    assert_eq!(owners().await, []);
    bench.delete(&path).await;
    bench.post(DEPLOYMENTS, &deployment()).await;
    scale(json!({})).await;
    assert_eq!(owners().await, [(Value::Null, false)]);
    scale(json!({"replicas": 3})).await;
    assert_eq!(owners().await, []);
}

/// Creates a budget for the Pods of an app, and gives it a status.
async fn budget(bench: &Bench, app: &str, policy: Value, mut status: Value) {
    let selector = json!({"matchLabels": {"app": app}});
    let spec =
        json!({"minAvailable": 1, "selector": selector, "unhealthyPodEvictionPolicy": policy});
    let budget = json!({"metadata": {"name": app}, "spec": spec});
    let created = bench.post(BUDGETS, &budget).await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    status["observedGeneration"] = json!(1);
    let path = format!("{BUDGETS}/{app}/status");
    let written = bench.merge(&path, json!({"status": status})).await;
    assert_eq!(written.code, StatusCode::OK, "{}", written.text);
}

/// Creates a Pod of an app that runs, and evicts it.
async fn evict(bench: &Bench, app: &str, name: &str, is_ready: bool) -> Answer {
    let mut pod = pod(name);
    pod["metadata"]["labels"]["app"] = app.into();
    bench.post(PODS, &pod).await;
    let ready = if is_ready { "True" } else { "False" };
    let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]});
    let path = format!("{PODS}/{name}");
    bench
        .merge(&format!("{path}/status"), json!({"status": status}))
        .await;
    let eviction = json!({"metadata": {"name": name}});
    bench.post(&format!("{path}/eviction"), &eviction).await
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_not_ready_go_without_a_disruption() {
    let bench = Bench::new().await;
    let healthy = |current: i32, desired: i32| json!({"disruptionsAllowed": 0, "currentHealthy": current, "desiredHealthy": desired});
    budget(&bench, "always", json!("AlwaysAllow"), healthy(0, 2)).await;
    budget(&bench, "enough", json!("IfHealthyBudget"), healthy(2, 2)).await;
    budget(&bench, "default", Value::Null, healthy(2, 2)).await;
    budget(&bench, "short", Value::Null, healthy(1, 2)).await;
    budget(&bench, "none", Value::Null, healthy(0, 0)).await;
    for (app, is_ready, code) in [
        ("always", false, 201),
        ("always", true, 429),
        ("enough", false, 201),
        ("enough", true, 429),
        ("default", false, 201),
        ("short", false, 429),
        ("none", false, 429),
    ] {
        let name = format!("{app}-{is_ready}");
        let answer = evict(&bench, app, &name, is_ready).await;
        assert_eq!(answer.code.as_u16(), code, "{name}: {}", answer.text);
        let budget = bench.get(&format!("{BUDGETS}/{app}")).await.json();
        assert!(budget["status"]["disruptedPods"].is_null(), "{budget:#}");
    }
    // Also a budget that no controller has observed.
    let spec = json!({"spec": {"minAvailable": 2}});
    bench.merge(&format!("{BUDGETS}/always"), spec).await;
    let answer = evict(&bench, "always", "again", false).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn a_budget_says_why_it_allows_no_disruption() {
    let bench = Bench::new().await;
    let condition = |reason: &str, message: &str| {
        json!([{"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": "2020-01-01T00:00:00Z"}])
    };
    for (app, conditions, current, expected) in [
        (
            "a",
            json!([]),
            1,
            "needs 2 healthy pods and has 1 currently",
        ),
        ("b", json!([]), 3, "does not allow evicting pods currently"),
        (
            "c",
            condition("SyncFailed", "no scale"),
            1,
            "does not allow evicting pods currently because it failed sync: no scale",
        ),
        (
            "d",
            condition("InsufficientPods", "too few"),
            3,
            "does not allow evicting pods currently (InsufficientPods): too few",
        ),
    ] {
        let status = json!({"disruptionsAllowed": 0, "currentHealthy": current, "desiredHealthy": 2,
            "conditions": conditions});
        budget(&bench, app, Value::Null, status).await;
        let refused = evict(&bench, app, app, true).await;
        let status = refused.fails(429, "TooManyRequests");
        let expected = format!("The disruption budget {app} {expected}");
        assert_eq!(text(&status, "/details/causes/0/message"), expected);
    }
    let status = json!({"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2});
    budget(&bench, "e", Value::Null, status).await;
    let evicted = evict(&bench, "e", "e", true).await;
    assert_eq!(evicted.code, StatusCode::CREATED, "{}", evicted.text);
    let budget = bench.get(&format!("{BUDGETS}/e")).await.json();
    assert_eq!(
        text(&budget, "/status/conditions/0/reason"),
        "InsufficientPods"
    );
}

#[tokio::test(start_paused = true)]
async fn replicas_are_checked_before_the_version_and_after_the_uid() {
    let bench = Bench::new().await;
    let created = bench.post(DEPLOYMENTS, &deployment()).await.json();
    let uid = text(&created, "/metadata/uid");
    let path = format!("{DEPLOYMENTS}/a/scale");
    let scale = |mut metadata: Value, replicas: i32| {
        metadata["name"] = "a".into();
        json!({"metadata": metadata, "spec": {"replicas": replicas}})
    };
    let (stale, other) = (json!({"resourceVersion": "1"}), json!({"uid": "x"}));
    let both = json!({"resourceVersion": "1", "uid": "x"});
    let put = bench.put(&path, &scale(stale.clone(), -1)).await;
    put.fails(422, "Invalid");
    let put = bench.put(&path, &scale(stale.clone(), 1)).await;
    put.fails(409, "Conflict");
    let unmet = format!("Precondition failed: UID in precondition: x, UID in object meta: {uid}");
    let stored = format!(
        "Operation cannot be fulfilled on deployments.apps \"a\": StorageError: invalid object, Code: 4, Key: \
         /registry/deployments/default/a, ResourceVersion: 0, AdditionalErrorMsg: {unmet}"
    );
    for metadata in [other.clone(), both.clone()] {
        let status = bench
            .put(&path, &scale(metadata, -1))
            .await
            .fails(409, "Conflict");
        assert_eq!(text(&status, "/message"), stored);
    }
    for metadata in [stale, other.clone()] {
        let patched = bench.merge(&path, scale(metadata, -1)).await;
        patched.fails(422, "Invalid");
    }
    let patched = format!("Operation cannot be fulfilled on deployments/scale.apps \"a\": {unmet}");
    for metadata in [other, both] {
        let status = bench
            .merge(&path, scale(metadata, 1))
            .await
            .fails(409, "Conflict");
        assert_eq!(text(&status, "/message"), patched);
    }
}

#[tokio::test(start_paused = true)]
async fn the_scale_of_a_custom_resource_compares_the_uid_of_an_update_alone() {
    let mut definition = definition("widgets", "Widget", "Namespaced");
    for at in 0..2 {
        definition["spec"]["versions"][at]["subresources"]["scale"] =
            json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"});
    }
    let bench = Bench::new().await;
    bench.define(&definition).await;
    bench.post(WIDGETS, &widget("a")).await;
    let path = format!("{WIDGETS}/a/scale");
    let scale = |metadata: Value, replicas: i32| json!({"metadata": metadata, "spec": {"replicas": replicas}});
    let unset = json!({"name": "a", "resourceVersion": "1"});
    let put = bench.put(&path, &scale(unset, i32::MIN)).await;
    put.fails(400, "BadRequest");
    let put = bench
        .put(&path, &scale(json!({"name": "a", "uid": "x"}), 2))
        .await;
    let status = put.fails(409, "Conflict");
    assert!(
        text(&status, "/message").contains("StorageError"),
        "{status:#}"
    );
    let stale = scale(json!({"uid": "x", "resourceVersion": "1"}), 2);
    bench.merge(&path, stale).await.fails(409, "Conflict");
    let patched = bench.merge(&path, scale(json!({"uid": "x"}), 2)).await;
    assert_eq!(patched.code, StatusCode::OK, "{}", patched.text);
    let below = bench.merge(&path, scale(json!({}), -1)).await;
    let status = below.fails(422, "Invalid");
    let expected = "Widget.demo.dev \"a\" is invalid: .spec.size: Invalid value: -1: should be a non-negative integer";
    assert_eq!(text(&status, "/message"), expected);
}
