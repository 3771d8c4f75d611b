//! Which requests webhooks are asked about.

use serde_json::{Value, json};

use super::server::{Hook, MUTATING, Reply, VALIDATING, register};
use crate::bench::{Bench, CONFIG_MAPS, text, with};

fn rule(resources: Value, more: Value) -> Value {
    let mut rule = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"]});
    rule["resources"] = resources;
    json!({"rules": [with(rule, more)]})
}

/// Returns what a webhook was asked, as `OPERATION resource/subresource kind`.
fn seen(hook: &Hook) -> Vec<String> {
    let asked = hook.asked();
    let each = asked.iter().map(|request| {
        let below = request["subResource"]
            .as_str()
            .map(|below| format!("/{below}"));
        format!(
            "{} {}{} {}",
            text(request, "/operation"),
            text(request, "/resource/resource"),
            below.unwrap_or_default(),
            text(request, "/kind/kind")
        )
    });
    each.collect()
}

#[tokio::test]
async fn subresources_are_asked_about_with_the_objects_they_take() {
    let hook = Hook::allowing().await;
    let bench = Bench::new().await;
    let rules = rule(json!(["*/*"]), json!({}));
    register(&bench, VALIDATING, "c", json!([hook.webhook("", rules)])).await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    bench.post(deployments, &deployment).await;
    bench
        .merge(
            &format!("{deployments}/d/scale"),
            json!({"spec": {"replicas": 3}}),
        )
        .await;
    bench
        .merge(
            &format!("{deployments}/d/status"),
            json!({"status": {"replicas": 1}}),
        )
        .await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    bench.post(pods, &pod).await;
    bench
        .post(
            &format!("{pods}/p/binding"),
            &json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
        )
        .await;
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    bench.post(&format!("{pods}/p/eviction"), &eviction).await;
    assert_eq!(
        seen(&hook),
        [
            "CREATE deployments Deployment",
            "UPDATE deployments/scale Scale",
            "UPDATE deployments/status Deployment",
            "CREATE pods Pod",
            "CREATE pods/binding Binding",
            "CREATE pods/eviction Eviction",
        ]
    );
}

#[tokio::test]
async fn configurations_and_policies_are_exempt() {
    let denying = Hook::start(|_, _| Reply::Response(json!({"allowed": false}))).await;
    let bench = Bench::new().await;
    for path in [MUTATING, VALIDATING] {
        let rules = rule(json!(["*/*"]), json!({}));
        register(&bench, path, "c", json!([denying.webhook("", rules)])).await;
    }
    assert_eq!(
        bench
            .post(CONFIG_MAPS, &json!({"metadata": {"name": "m"}}))
            .await
            .code,
        400
    );
    for path in [MUTATING, VALIDATING] {
        assert_eq!(bench.delete(&format!("{path}/c")).await.code, 200);
    }
    assert_eq!(
        bench
            .post(CONFIG_MAPS, &json!({"metadata": {"name": "m"}}))
            .await
            .code,
        201
    );
}

#[tokio::test]
async fn selectors_look_at_namespaces_and_at_old_and_new_objects() {
    let hook = Hook::allowing().await;
    let bench = Bench::new().await;
    let selectors = json!({"namespaceSelector": {"matchLabels": {"team": "a"}},
        "objectSelector": {"matchExpressions": [{"key": "on", "operator": "Exists"}]}});
    register(
        &bench,
        VALIDATING,
        "c",
        json!([hook.webhook("", selectors)]),
    )
    .await;
    let namespace = json!({"metadata": {"name": "a", "labels": {"team": "a"}}});
    bench.post("/api/v1/namespaces", &namespace).await;
    let maps = "/api/v1/namespaces/a/configmaps";
    let map = |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
    bench
        .post(CONFIG_MAPS, &map("elsewhere", json!({"on": "1"})))
        .await;
    bench.post(maps, &map("off", json!({}))).await;
    assert_eq!(seen(&hook), [""; 0]);
    bench.post(maps, &map("on", json!({"on": "1"}))).await;
    // The label goes, but the state that had it is replaced.
    bench
        .merge(&format!("{maps}/on"), json!({"metadata": {"labels": null}}))
        .await;
    bench
        .merge(&format!("{maps}/on"), json!({"data": {"a": "b"}}))
        .await;
    assert_eq!(
        seen(&hook),
        ["CREATE configmaps ConfigMap", "UPDATE configmaps ConfigMap"]
    );
}

#[tokio::test]
async fn a_namespace_is_selected_by_its_own_labels() {
    let hook = Hook::allowing().await;
    let bench = Bench::new().await;
    let mut more = rule(json!(["namespaces"]), json!({"scope": "Cluster"}));
    more["namespaceSelector"] = json!({"matchLabels": {"team": "a"}});
    register(&bench, VALIDATING, "c", json!([hook.webhook("", more)])).await;
    for (name, team) in [("x", "b"), ("y", "a")] {
        let namespace = json!({"metadata": {"name": name, "labels": {"team": team}}});
        bench.post("/api/v1/namespaces", &namespace).await;
    }
    let asked = hook.asked();
    assert_eq!(asked.len(), 1, "{asked:#?}");
    assert_eq!(
        (&asked[0]["name"], &asked[0]["namespace"]),
        (&json!("y"), &json!("y"))
    );
}

#[tokio::test]
async fn conditions_skip_a_webhook_or_refuse_the_request() {
    let hook = Hook::allowing().await;
    let bench = Bench::new().await;
    let condition = |expression: &str| json!([{"name": "c", "expression": expression}]);
    let conditions =
        condition("request.operation == 'CREATE' && object.metadata.name.startsWith('x')");
    let webhook = hook.webhook("", json!({"matchConditions": conditions}));
    register(&bench, VALIDATING, "c", json!([webhook])).await;
    for name in ["x", "y"] {
        bench
            .post(CONFIG_MAPS, &json!({"metadata": {"name": name}}))
            .await;
    }
    assert_eq!(hook.asked().len(), 1);
    bench.delete(&format!("{VALIDATING}/c")).await;

    let broken = condition("object.spec.foo == 1");
    let webhook = hook.webhook("", json!({"matchConditions": broken}));
    register(&bench, VALIDATING, "c", json!([webhook.clone()])).await;
    let refused = bench
        .post(CONFIG_MAPS, &json!({"metadata": {"name": "z"}}))
        .await;
    assert_eq!(
        refused.fails(403, "Forbidden")["message"],
        "configmaps \"z\" is forbidden: expression 'object.spec.foo == 1' resulted in error: no such key: spec"
    );
    bench.delete(&format!("{VALIDATING}/c")).await;
    let mut ignoring = webhook;
    ignoring["failurePolicy"] = "Ignore".into();
    register(&bench, VALIDATING, "c", json!([ignoring])).await;
    assert_eq!(
        bench
            .post(CONFIG_MAPS, &json!({"metadata": {"name": "z"}}))
            .await
            .code,
        201
    );
    assert_eq!(hook.asked(), [json!(null); 0]);
}

#[tokio::test]
async fn an_equivalent_version_is_converted_and_an_exact_one_is_not() {
    let hook = Hook::allowing().await;
    let bench = Bench::new().await;
    let scalers = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    let scaler = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70,
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}})
    };
    let rules = rule(
        json!(["horizontalpodautoscalers"]),
        json!({"apiGroups": ["autoscaling"], "apiVersions": ["v2"]}),
    );
    let mut exact = rules.clone();
    exact["matchPolicy"] = "Exact".into();
    register(&bench, VALIDATING, "c", json!([hook.webhook("", exact)])).await;
    bench.post(scalers, &scaler("a")).await;
    assert_eq!(hook.asked(), [json!(null); 0]);
    bench.delete(&format!("{VALIDATING}/c")).await;
    register(&bench, VALIDATING, "c", json!([hook.webhook("", rules)])).await;
    let made = bench.post(scalers, &scaler("b")).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let asked = hook.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (
            text(&asked[0], "/kind/version"),
            text(&asked[0], "/requestKind/version")
        ),
        ("v2", "v1")
    );
    assert_eq!(text(&asked[0], "/object/apiVersion"), "autoscaling/v2");
    assert_eq!(
        text(&asked[0], "/object/spec/metrics/0/resource/name"),
        "cpu"
    );
}

#[tokio::test]
async fn dry_runs_need_webhooks_without_side_effects() {
    let hook = Hook::allowing().await;
    for path in [MUTATING, VALIDATING] {
        let bench = Bench::new().await;
        let noisy = json!({"sideEffects": "NoneOnDryRun"});
        register(&bench, path, "c", json!([hook.webhook("", noisy)])).await;
        let dry = format!("{CONFIG_MAPS}?dryRun=All");
        assert_eq!(
            bench
                .post(&dry, &json!({"metadata": {"name": "m"}}))
                .await
                .code,
            201
        );
        let asked = hook.asked();
        assert_eq!(
            (&asked[0]["dryRun"], &asked[0]["options"]["dryRun"]),
            (&json!(true), &json!(["All"]))
        );
        assert_eq!(bench.get(&format!("{CONFIG_MAPS}/m")).await.code, 404);
    }
}
