//! What the server adds to new objects, warns of and refuses as admission plugins do.

use http::Method;
use lariat_cluster::{Cluster, User};
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use crate::bench::{Answer, Bench, text};
use crate::denials::REQUEST;
use crate::own_objects::{becomes, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

fn warnings(answer: &Answer) -> Vec<&str> {
    let all = answer.headers.get_all("warning").into_iter();
    all.filter_map(|value| value.to_str().ok()?.strip_prefix("299 - "))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_new_node_keeps_its_status_and_others_do_not() {
    let bench = Bench::new().await;
    let status =
        json!({"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]});
    let node = json!({"metadata": {"name": "n"}, "status": status});
    let created = bench.post("/api/v1/nodes", &node).await.json();
    assert_eq!(created["status"]["allocatable"], json!({"cpu": "4"}));
    assert_eq!(text(&created, "/status/conditions/0/type"), "Ready");
    let volume = json!({"metadata": {"name": "v"}, "status": {"phase": "Bound"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}});
    let created = bench
        .post("/api/v1/persistentvolumes", &volume)
        .await
        .json();
    assert_eq!(text(&created, "/status/phase"), "Pending", "{created:#}");
}

#[tokio::test(start_paused = true)]
async fn pods_get_a_priority_and_tolerations() {
    let bench = Bench::new().await;
    let pod = |name: &str, spec: Value| {
        let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        pod["spec"]
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().cloned().unwrap());
        pod
    };
    let plain = bench.post(PODS, &pod("a", json!({}))).await.json();
    assert_eq!(plain["spec"]["priority"], 0);
    assert_eq!(
        plain["spec"]["tolerations"].as_array().map(Vec::len),
        Some(2)
    );
    let sent = pod("a", json!({"activeDeadlineSeconds": 9}));
    let put = bench.put(&format!("{PODS}/a"), &sent).await;
    assert_eq!(
        put.json()["spec"]["priority"],
        0,
        "what a client leaves out stays: {}",
        put.text
    );
    let class = json!({"priorityClassName": "system-node-critical"});
    let critical = bench.post(PODS, &pod("b", class)).await.json();
    assert_eq!(critical["spec"]["priority"], 2_000_001_000);
    for refused in [json!({"priorityClassName": "none"}), json!({"priority": 5})] {
        bench
            .post(PODS, &pod("c", refused))
            .await
            .fails(403, "Forbidden");
    }
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str| json!({"metadata": {"name": name}, "value": 7, "globalDefault": true});
    bench.post(classes, &class("d")).await;
    bench
        .post(classes, &class("e"))
        .await
        .fails(403, "Forbidden");
    let default = bench.post(PODS, &pod("d", json!({}))).await.json();
    assert_eq!(
        (
            text(&default, "/spec/priorityClassName"),
            &default["spec"]["priority"]
        ),
        ("d", &json!(7))
    );
}

#[tokio::test(start_paused = true)]
async fn a_claim_stays_while_a_pod_uses_it() {
    let bench = Bench::new().await;
    let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let created = bench.post(CLAIMS, &claim).await.json();
    assert_eq!(
        created["metadata"]["finalizers"],
        json!(["kubernetes.io/pvc-protection"])
    );
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n",
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}});
    bench.post(PODS, &pod).await;
    let path = format!("{CLAIMS}/c");
    bench.delete(&path).await;
    sleep(Duration::from_secs(1)).await;
    assert!(json(&bench, &path).await["metadata"]["deletionTimestamp"].is_string());
    bench
        .delete(&format!("{PODS}/p?gracePeriodSeconds=0"))
        .await;
    becomes(&bench, &path, 404).await;
}

#[tokio::test(start_paused = true)]
async fn clients_are_warned_of_what_is_deprecated_or_doubtful() {
    let bench = Bench::new().await;
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}],
        "externalIPs": ["1.2.3.4"], "trafficDistribution": "PreferClose"}});
    let created = bench.post(services, &service).await;
    assert_eq!(
        warnings(&created),
        [
            "\"spec.externalIPs is deprecated and may no longer be implemented in some clusters\"",
            "\"spec.trafficDistribution: \\\"PreferClose\\\" is deprecated; use \\\"PreferSameZone\\\"\"",
        ]
    );
    let listed = bench.get("/api/v1/endpoints").await;
    let endpoints =
        "\"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"";
    assert_eq!(warnings(&listed), [endpoints]);
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let job = json!({"metadata": {"name": "j"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    assert_eq!(warnings(&bench.post(jobs, &job).await), [""; 0]);
    let kept = bench.delete(&format!("{jobs}/j")).await;
    assert!(
        warnings(&kept)[0].contains("child pods are preserved"),
        "{:?}",
        kept.headers
    );
    bench.post(jobs, &job).await;
    let explicit = bench
        .delete(&format!("{jobs}/j?propagationPolicy=Background"))
        .await;
    assert_eq!(warnings(&explicit), [""; 0]);
}

async fn send_as(bench: &Bench, user: &[(&str, &str)], path: &str, object: &Value) -> Answer {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(user);
    bench
        .ask(Method::POST, path, &headers, object.to_string())
        .await
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_certificate_names_who_asks() {
    let bench = Bench::new().await;
    let bob = [
        ("impersonate-user", "bob"),
        ("impersonate-uid", "u"),
        ("impersonate-group", "devs"),
        ("impersonate-extra-example.com%2fscopes", "a"),
        ("impersonate-extra-example.com%2fscopes", "b"),
    ];
    let request = signing_request();
    let created = send_as(&bench, &bob, REQUESTS, &request).await.json();
    let spec = &created["spec"];
    assert_eq!(
        (&spec["username"], &spec["uid"]),
        (&json!("bob"), &json!("u")),
        "{created:#}"
    );
    assert_eq!(spec["groups"], json!(["devs", "system:authenticated"]));
    assert_eq!(spec["extra"], json!({"example.com/scopes": ["a", "b"]}));
}

#[tokio::test(start_paused = true)]
async fn what_was_requested_and_decided_of_a_certificate_stays() {
    let bench = Bench::new().await;
    let created = bench.post(REQUESTS, &signing_request()).await.json();
    let path = format!("{REQUESTS}/r");
    let mut changed = created.clone();
    changed["spec"]["usages"] = json!(["server auth"]);
    changed["metadata"]["labels"] = json!({"a": "b"});
    let put = bench.put(&path, &changed).await.json();
    assert_eq!(put["metadata"]["labels"], json!({"a": "b"}), "{put:#}");
    assert_eq!(put["spec"], created["spec"]);

    let approval = |reason: &str, time: Value| {
        json!({"status": {"conditions": [{
            "type": "Approved", "status": "True", "reason": reason, "lastUpdateTime": time,
        }]}})
    };
    let approved = approval("First", Value::Null);
    let approved = bench
        .merge(&format!("{path}/approval"), approved)
        .await
        .json();
    let first = &approved["status"]["conditions"][0];
    assert!(first["lastUpdateTime"].is_string(), "{approved:#}");
    assert_eq!(first["lastTransitionTime"], first["lastUpdateTime"]);
    let other = approval("Second", json!("2026-01-01T00:00:00Z"));
    let status = bench.merge(&format!("{path}/status"), other).await.json();
    assert_eq!(status["status"]["conditions"][0], *first, "{status:#}");
}

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// Bob's request for a certificate, in which Eve claims to be the one who asks.
fn signing_request() -> Value {
    json!({"metadata": {"name": "r"}, "spec": {"username": "eve", "groups": ["x"],
        "signerName": "a.dev/b", "usages": ["client auth"], "request": REQUEST}})
}

/// A cluster with authorisation, in which Jane may create roles and bindings, and create and get pods.
async fn with_jane() -> Bench {
    let builder = Cluster::builder().rbac().token("root");
    let builder = builder.token_of("jane", User::new("jane"));
    let cluster = builder.start().await.expect("it does not listen");
    let bench = Bench { cluster };
    let rules = json!([{"apiGroups": ["", "rbac.authorization.k8s.io"],
        "resources": ["pods", "clusterroles", "clusterrolebindings"], "verbs": ["create", "get"]}]);
    bench.post(ROLES, &role("writer", &rules)).await;
    bench.post(BINDINGS, &binding("writer", "writer")).await;
    bench
}

fn role(name: &str, rules: &Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

/// Binds Jane to a role.
fn binding(name: &str, role: &str) -> Value {
    json!({"metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": "jane"}]})
}

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const JANE: [(&str, &str); 1] = [("authorization", "Bearer jane")];

#[tokio::test(start_paused = true)]
async fn a_user_grants_only_the_permissions_they_have() {
    let bench = with_jane().await;
    let rule = |verbs: Value| json!([{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]);
    let within = role("a", &rule(json!(["get"])));
    assert_eq!(send_as(&bench, &JANE, ROLES, &within).await.code, 201);
    let beyond = role("b", &rule(json!(["get", "delete"])));
    let answer = send_as(&bench, &JANE, ROLES, &beyond).await;
    assert_eq!(
        answer.fails(403, "Forbidden")["message"],
        "clusterroles.rbac.authorization.k8s.io \"b\" is forbidden: user \"jane\" (groups=[\"system:authenticated\"]) \
         is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], \
         Verbs:[\"delete\"]}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_aggregated_role_needs_all_permissions() {
    let bench = with_jane().await;
    let aggregated = json!({"metadata": {"name": "a"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let answer = send_as(&bench, &JANE, ROLES, &aggregated).await;
    assert_eq!(
        answer.fails(403, "Forbidden")["message"],
        "clusterroles.rbac.authorization.k8s.io \"a\" is forbidden: must have cluster-admin privileges to use the \
         aggregationRule"
    );
    let empty = json!({"metadata": {"name": "b"}, "aggregationRule": {"clusterRoleSelectors": []}});
    let answer = send_as(&bench, &JANE, ROLES, &empty).await;
    answer.fails(422, "Invalid");
}

#[tokio::test(start_paused = true)]
async fn a_path_behind_a_proxy_is_no_part_of_the_permission() {
    let bench = with_jane().await;
    let path = "/api/v1/nodes/n/proxy/metrics";
    let refused = bench.ask(Method::GET, path, &JANE, "").await;
    assert_eq!(
        refused.fails(403, "Forbidden")["message"],
        "nodes \"n\" is forbidden: User \"jane\" cannot get resource \"nodes/proxy\" in API group \"\" at the cluster \
         scope"
    );
    let rules = json!([{"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}]);
    bench.post(ROLES, &role("proxies", &rules)).await;
    bench.post(BINDINGS, &binding("proxies", "proxies")).await;
    let allowed = bench.ask(Method::GET, path, &JANE, "").await;
    allowed.fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_user_binds_only_roles_they_have_or_may_bind() {
    let bench = with_jane().await;
    let bind =
        async |name: &str, role: &str| send_as(&bench, &JANE, BINDINGS, &binding(name, role)).await;
    assert_eq!(bind("a", "writer").await.code, 201);
    bind("b", "cluster-admin").await.fails(403, "Forbidden");
    let missing = bind("c", "none").await.fails(404, "NotFound");
    // The server names the kind of the binding, with the name of the role.
    assert_eq!(
        missing["message"],
        "clusterrolebindings.rbac.authorization.k8s.io \"none\" not found"
    );
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
        "verbs": ["bind", "escalate"]}]);
    bench.post(ROLES, &role("granter", &rules)).await;
    bench.post(BINDINGS, &binding("granter", "granter")).await;
    assert_eq!(bind("d", "cluster-admin").await.code, 201);
}
