//! Quotas, limit ranges and service accounts.

use http::Method;
use lariat_cluster::Cluster;
use serde_json::{Value, json};

use crate::bench::{Bench, CONFIG_MAPS, text};
use crate::own_objects::json as read;

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const RANGES: &str = "/api/v1/namespaces/default/limitranges";

fn pod(name: &str, resources: Value) -> Value {
    let mut pod =
        json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    pod["spec"]["containers"][0]["resources"] = resources;
    pod
}

async fn quota(bench: &Bench, spec: Value) {
    let mut quota = json!({"metadata": {"name": "q"}});
    quota["spec"] = spec;
    let answer = bench.post(QUOTAS, &quota).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
}

/// Waits until the status of the quota says what is used.
async fn used(bench: &Bench, expected: &Value) {
    let path = format!("{QUOTAS}?watch=1&fieldSelector=metadata.name=q");
    let mut watch = bench.watch(&path).await;
    loop {
        let (_, quota) = watch.event().await;
        if quota["status"]["used"] == *expected {
            assert_eq!(quota["status"]["hard"], quota["spec"]["hard"]);
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_quota_counts_objects_and_refuses_what_is_too_many() {
    let bench = Bench::new().await;
    quota(
        &bench,
        json!({"hard": {"configmaps": "1", "count/secrets": "1", "count/deployments.apps": "0"}}),
    )
    .await;
    bench.config_map("a", json!({})).await;
    used(
        &bench,
        &json!({"configmaps": "1", "count/secrets": "0", "count/deployments.apps": "0"}),
    )
    .await;
    let answer = bench
        .post(CONFIG_MAPS, &json!({"metadata": {"name": "b"}}))
        .await;
    assert_eq!(
        answer.fails(403, "Forbidden")["message"],
        "configmaps \"b\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: \
         configmaps=1"
    );
    let answer = bench
        .post(
            &format!("{CONFIG_MAPS}?dryRun=All"),
            &json!({"metadata": {"name": "b"}}),
        )
        .await;
    answer.fails(403, "Forbidden");
    let merged = bench
        .merge(&format!("{CONFIG_MAPS}/a"), json!({"data": {"a": "2"}}))
        .await;
    assert_eq!(merged.code, 200, "what is there may change");
    bench.delete(&format!("{CONFIG_MAPS}/a")).await;
    bench.config_map("b", json!({})).await;
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let answer = bench
        .post("/apis/apps/v1/namespaces/default/deployments", &deployment)
        .await;
    answer.fails(403, "Forbidden");
    let elsewhere = json!({"metadata": {"name": "n"}});
    bench.post("/api/v1/namespaces", &elsewhere).await;
    let answer = bench
        .post("/api/v1/namespaces/n/configmaps", &elsewhere)
        .await;
    assert_eq!(answer.code, 201, "a quota is that of its namespace");
}

#[tokio::test(start_paused = true)]
async fn a_quota_sums_up_what_pods_request() {
    let bench = Bench::new().await;
    quota(
        &bench,
        json!({"hard": {"pods": "3", "requests.cpu": "1", "limits.memory": "1Gi"}}),
    )
    .await;
    let answer = bench
        .post(PODS, &pod("none", json!({"requests": {"cpu": "1"}})))
        .await;
    assert_eq!(
        answer.fails(403, "Forbidden")["message"],
        "pods \"none\" is forbidden: failed quota: q: must specify limits.memory for: c"
    );
    let half = |name: &str| {
        pod(
            name,
            json!({"requests": {"cpu": "500m"}, "limits": {"memory": "512Mi"}}),
        )
    };
    for name in ["a", "b"] {
        assert_eq!(bench.post(PODS, &half(name)).await.code, 201);
    }
    used(
        &bench,
        &json!({"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi"}),
    )
    .await;
    let answer = bench.post(PODS, &half("c")).await;
    assert_eq!(
        answer.fails(403, "Forbidden")["message"],
        "pods \"c\" is forbidden: exceeded quota: q, requested: limits.memory=512Mi,requests.cpu=500m, used: \
         limits.memory=1Gi,requests.cpu=1, limited: limits.memory=1Gi,requests.cpu=1"
    );
    // A Pod that is over uses nothing any more.
    bench
        .merge(
            &format!("{PODS}/a/status"),
            json!({"status": {"phase": "Succeeded"}}),
        )
        .await;
    assert_eq!(bench.post(PODS, &half("c")).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn scopes_limit_a_quota_to_some_pods() {
    let bench = Bench::new().await;
    quota(
        &bench,
        json!({"hard": {"pods": "0"}, "scopes": ["BestEffort"]}),
    )
    .await;
    bench
        .post(PODS, &pod("a", json!({})))
        .await
        .fails(403, "Forbidden");
    let answer = bench
        .post(PODS, &pod("a", json!({"requests": {"cpu": "1"}})))
        .await;
    assert_eq!(answer.code, 201, "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn a_quota_limits_storage_and_kinds_of_services() {
    let bench = Bench::new().await;
    let hard = json!({"requests.storage": "1Gi", "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "services.nodeports": "1"});
    quota(&bench, json!({"hard": hard})).await;
    let claim = |name: &str, size: &str| {
        json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "gold",
            "resources": {"requests": {"storage": size}}}})
    };
    bench
        .post(CLAIMS, &claim("big", "2Gi"))
        .await
        .fails(403, "Forbidden");
    assert_eq!(bench.post(CLAIMS, &claim("a", "512Mi")).await.code, 201);
    bench
        .post(CLAIMS, &claim("b", "1Mi"))
        .await
        .fails(403, "Forbidden");
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}});
    assert_eq!(bench.post(SERVICES, &service).await.code, 201);
    let opened = bench
        .merge(
            &format!("{SERVICES}/s"),
            json!({"spec": {"type": "NodePort"}}),
        )
        .await;
    let status = opened.fails(403, "Forbidden");
    assert!(
        text(&status, "/message").contains("requested: services.nodeports=2"),
        "{status:#}"
    );
}

#[tokio::test]
async fn creations_at_once_do_not_exceed_a_quota() {
    let bench = Bench::new().await;
    quota(&bench, json!({"hard": {"configmaps": "5"}})).await;
    let all = (0..20).map(|at| {
        let bench = &bench;
        async move {
            let object = json!({"metadata": {"name": format!("m{at}")}});
            bench.post(CONFIG_MAPS, &object).await.code.as_u16()
        }
    });
    let codes = futures::future::join_all(all).await;
    assert_eq!(
        codes.iter().filter(|code| **code == 201).count(),
        5,
        "{codes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn without_quotas_they_have_no_effect() {
    let cluster = Cluster::builder().quotas(false).start().await.unwrap();
    let bench = Bench { cluster };
    quota(&bench, json!({"hard": {"configmaps": "0"}})).await;
    bench.config_map("a", json!({})).await;
    assert_eq!(
        read(&bench, &format!("{QUOTAS}/q")).await["status"],
        json!({})
    );
}

#[tokio::test(start_paused = true)]
async fn a_limit_range_gives_defaults_and_bounds() {
    let bench = Bench::new().await;
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [
        {"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"},
            "min": {"cpu": "50m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "5"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}, "min": {"storage": "1Mi"}}]}});
    let answer = bench.post(RANGES, &range).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    let created = bench.post(PODS, &pod("a", json!({}))).await.json();
    let resources = &created["spec"]["containers"][0]["resources"];
    assert_eq!(
        resources["limits"],
        json!({"cpu": "500m", "memory": "1Gi"}),
        "{created:#}"
    );
    assert_eq!(resources["requests"]["cpu"], "100m");
    assert_eq!(
        created["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c"
    );
    for (resources, expected) in [
        (
            json!({"requests": {"cpu": "10m"}, "limits": {"cpu": "50m"}}),
            "minimum cpu usage per Container is 50m, but request is 10m",
        ),
        (
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}),
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}),
            "cpu max limit to request ratio per Container is 5, but provided ratio is 10.000000",
        ),
    ] {
        let status = bench
            .post(PODS, &pod("b", resources))
            .await
            .fails(403, "Forbidden");
        assert_eq!(
            status["message"],
            format!("pods \"b\" is forbidden: {expected}")
        );
    }
    let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}}}});
    let status = bench.post(CLAIMS, &claim).await.fails(403, "Forbidden");
    let expected = "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi";
    assert_eq!(
        status["message"],
        format!("persistentvolumeclaims \"c\" is forbidden: {expected}")
    );
}

#[tokio::test(start_paused = true)]
async fn a_resize_is_checked_like_a_creation() {
    let bench = Bench::new().await;
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [
        {"type": "Container", "max": {"cpu": "3"}}]}});
    bench.post(RANGES, &range).await;
    quota(&bench, json!({"hard": {"requests.cpu": "2"}})).await;
    let amounts = |cpu: &str| json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
    let created = bench.post(PODS, &pod("a", amounts("1"))).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let path = format!("{PODS}/a/resize");
    let mut resize = created.json();
    for (cpu, expected) in [
        ("4", "maximum cpu usage per Container is 3, but limit is 4"),
        (
            "2500m",
            "exceeded quota: q, requested: requests.cpu=1500m, used: requests.cpu=1, limited: requests.cpu=2",
        ),
    ] {
        resize["spec"]["containers"][0]["resources"] = amounts(cpu);
        let status = bench.put(&path, &resize).await.fails(403, "Forbidden");
        assert_eq!(
            status["message"],
            format!("pods \"a\" is forbidden: {expected}")
        );
    }
    resize["spec"]["containers"][0]["resources"] = amounts("2");
    let resized = bench.put(&path, &resize).await;
    assert_eq!(resized.code, 200, "{}", resized.text);
    used(&bench, &json!({"requests.cpu": "2"})).await;
}

#[tokio::test(start_paused = true)]
async fn a_resized_pod_counts_as_it_is_until_it_is_resized() {
    let bench = Bench::new().await;
    let amounts = |cpu: &str| json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
    for (name, resources) in [
        ("a", amounts("1")),
        ("c", json!({"requests": {"memory": "1Mi"}})),
    ] {
        let created = bench.post(PODS, &pod(name, resources)).await;
        assert_eq!(created.code, 201, "{}", created.text);
    }
    quota(&bench, json!({"hard": {"requests.cpu": "4"}})).await;
    let patch = async |path: &str, body: Value| {
        let strategic = [("content-type", "application/strategic-merge-patch+json")];
        let path = format!("{PODS}/{path}");
        bench
            .ask(Method::PATCH, &path, &strategic, body.to_string())
            .await
    };
    let resize = async |name: &str, resources: Value| {
        let body = json!({"spec": {"containers": [{"name": "c", "resources": resources}]}});
        patch(&format!("{name}/resize"), body).await
    };
    let reported = json!({"name": "c", "image": "i", "imageID": "x", "ready": true, "restartCount": 0,
        "allocatedResources": {"cpu": "2"}, "resources": amounts("3")});
    let body = json!({"status": {"containerStatuses": [reported]}});
    assert_eq!(patch("a/status", body).await.code, 200);
    used(&bench, &json!({"requests.cpu": "3"})).await;
    for (cpu, expected) in [("2", "3"), ("4", "4"), ("1", "3")] {
        assert_eq!(resize("a", amounts(cpu)).await.code, 200, "{cpu}");
        used(&bench, &json!({"requests.cpu": expected})).await;
    }
    let status = resize("a", amounts("5")).await.fails(403, "Forbidden");
    let excess = "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=3, limited: requests.cpu=4";
    assert_eq!(
        status["message"],
        format!("pods \"a\" is forbidden: {excess}")
    );

    // What no kubelet can do is not charged.
    let pending = json!([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]);
    let body = json!({"status": {"conditions": pending}});
    assert_eq!(patch("a/status", body).await.code, 200);
    assert_eq!(resize("a", amounts("8")).await.code, 200);

    // A Pod from before the quota must have what it requires, as a new one.
    let missing = "pods \"c\" is forbidden: failed quota: q: must specify requests.cpu for: c";
    let status = resize("c", json!({})).await.fails(403, "Forbidden");
    assert_eq!(status["message"], missing);
    let body = json!({"spec": {"activeDeadlineSeconds": 100}});
    let status = patch("c", body).await.fails(403, "Forbidden");
    assert_eq!(status["message"], missing);
}

#[tokio::test(start_paused = true)]
async fn pods_run_as_a_service_account_with_its_token_if_asked_for() {
    let cluster = Cluster::builder()
        .service_accounts(true)
        .start()
        .await
        .unwrap();
    let bench = Bench { cluster };
    let created = bench.post(PODS, &pod("a", json!({}))).await.json();
    let spec = &created["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    let volume = &spec["volumes"][0];
    assert!(
        text(volume, "/name").starts_with("kube-api-access-"),
        "{created:#}"
    );
    let sources = volume["projected"]["sources"].as_array().unwrap();
    assert_eq!(
        sources[0],
        json!({"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}})
    );
    let mount = &spec["containers"][0]["volumeMounts"][0];
    assert_eq!(
        (&mount["name"], &mount["readOnly"]),
        (&volume["name"], &json!(true))
    );

    let mut other = pod("b", json!({}));
    other["spec"]["serviceAccountName"] = "x".into();
    let status = bench.post(PODS, &other).await.fails(403, "Forbidden");
    let expected = "pods \"b\" is forbidden: error looking up service account default/x: serviceaccount \"x\" not found";
    assert_eq!(status["message"], expected);
    let account = json!({"metadata": {"name": "x"}, "automountServiceAccountToken": false,
        "imagePullSecrets": [{"name": "pull"}]});
    bench
        .post("/api/v1/namespaces/default/serviceaccounts", &account)
        .await;
    let created = bench.post(PODS, &other).await.json();
    assert_eq!(created["spec"]["volumes"], Value::Null, "{created:#}");
    assert_eq!(
        created["spec"]["imagePullSecrets"],
        json!([{"name": "pull"}])
    );

    let plain = Bench::new()
        .await
        .post(PODS, &pod("a", json!({})))
        .await
        .json();
    assert_eq!(plain["spec"]["volumes"], Value::Null);
}
