//! Scales, bindings and evictions: what their bodies have to be.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::bench::{Answer, Bench, text};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

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
    let binding = |metadata: Value| json!({"metadata": metadata, "target": {"name": "n"}});
    let path = format!("{PODS}/a/binding");
    let untyped = bench.post(&path, &json!({"target": {"name": 7}})).await;
    untyped.fails(400, "BadRequest");
    for other in [json!({"uid": "x"}), json!({"resourceVersion": "1"})] {
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
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
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
