//! Pod Security: what the labels of a namespace forbid.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::bench::Bench;

/// Lines `level:version base changes`, and after each what the server says of the Pod.
const VERDICTS: &str = include_str!("pod_security.txt");
const PREFIX: &str = "pod-security.kubernetes.io/";

async fn namespace(bench: &Bench, name: &str, labels: &[(&str, &str)]) {
    let labels: Value = labels
        .iter()
        .map(|(key, value)| (format!("{PREFIX}{key}"), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let namespace = json!({"metadata": {"name": name, "labels": labels}});
    let answer = bench.post("/api/v1/namespaces", &namespace).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
}

/// Merges as a JSON merge patch does.
fn merge(target: &mut Value, changes: &Value) {
    let Value::Object(changes) = changes else {
        *target = changes.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let members = target.as_object_mut().expect("an object");
    for (name, value) in changes {
        if value.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// Makes a Pod that is `safe` at all levels, or `bare`, with changes.
fn pod(base: &str, changes: &Value) -> Value {
    let mut container = json!({"name": "c", "image": "i"});
    let mut spec = json!({});
    if base == "safe" {
        container["securityContext"] =
            json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
        spec["securityContext"] =
            json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    }
    let part = |name: &str| changes.get(name).cloned();
    merge(&mut container, &part("container").unwrap_or(json!({})));
    merge(&mut spec, &part("spec").unwrap_or(json!({})));
    let mut containers = vec![container];
    let others = changes["others"].as_array();
    containers.extend(others.into_iter().flatten().cloned());
    spec["containers"] = containers.into();
    json!({"metadata": {"name": "p", "annotations": part("annotations")}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn pods_are_judged_as_by_a_genuine_server() {
    let bench = Bench::new().await;
    let mut known = BTreeSet::new();
    let lines: Vec<&str> = VERDICTS.lines().skip(2).collect();
    for pair in lines.chunks(2) {
        let [asked, verdict] = pair else {
            panic!("a line without a verdict");
        };
        let mut words = asked.splitn(3, ' ');
        let mut word = || words.next().expect("three words");
        let (label, base, changes) = (word(), word(), word());
        let changes: Value = serde_json::from_str(changes).expect("JSON");
        let (level, version) = label.split_once(':').expect("a level and a version");
        let name = format!("{level}-{}", version.replace('.', "-"));
        if known.insert(name.clone()) {
            let labels = [("enforce", level), ("enforce-version", version)];
            namespace(&bench, &name, &labels).await;
        }
        let path = format!("/api/v1/namespaces/{name}/pods?dryRun=All");
        let answer = bench.post(&path, &pod(base, &changes)).await;
        if *verdict == " ok" {
            assert_eq!(answer.code, 201, "{asked}: {}", answer.text);
            continue;
        }
        let refused = answer.fails(403, "Forbidden");
        let expected =
            format!("pods \"p\" is forbidden: violates PodSecurity \"{label}\":{verdict}");
        assert_eq!(refused["message"], expected, "{asked}");
        assert_eq!(refused["details"], json!({"name": "p", "kind": "pods"}));
    }
    assert!(lines.len() > 200, "the file is read");
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_is_in_the_refusal() {
    let bench = Bench::new().await;
    namespace(&bench, "strict", &[("enforce", "restricted")]).await;
    let mut unnamed = pod("bare", &json!({}));
    unnamed["metadata"] = json!({"generateName": "g-"});
    let answer = bench.post("/api/v1/namespaces/strict/pods", &unnamed).await;
    let refused = answer.fails(403, "Forbidden");
    let name = refused["details"]["name"].as_str().expect("a name");
    assert!(name.len() > 2 && name.starts_with("g-"), "{name}");
}

#[cfg(feature = "workloads")]
#[tokio::test(start_paused = true)]
async fn simulated_workloads_make_no_pods_that_are_refused() {
    use crate::workloads::{bench, settle, workload};

    let bench = bench(lariat_cluster::Workloads::default()).await;
    namespace(&bench, "strict", &[("enforce", "restricted")]).await;
    let path = "/apis/apps/v1/namespaces/strict/replicasets";
    bench
        .make(path, &workload("a", &json!({"replicas": 2})))
        .await;
    settle().await;
    assert!(
        bench
            .items("/api/v1/namespaces/strict/pods")
            .await
            .is_empty()
    );
    let safe = pod("safe", &json!({}));
    let mut set = workload("b", &json!({"replicas": 2}));
    set["spec"]["template"]["spec"] = safe["spec"].clone();
    bench.make(path, &set).await;
    settle().await;
    let pods = bench.items("/api/v1/namespaces/strict/pods").await;
    assert_eq!(pods.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_journal_has_what_an_audit_log_would() {
    let bench = Bench::new().await;
    let labels = [
        ("enforce", "baseline"),
        ("audit", "restricted"),
        ("audit-version", "v1.0"),
    ];
    namespace(&bench, "watched", &labels).await;
    let pods = "/api/v1/namespaces/watched/pods";
    let created = bench.post(pods, &pod("bare", &json!({}))).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let requests = bench.cluster.journal().requests();
    let last = requests.last().expect("it was just made");
    let note = |key: &str, text: &str| (format!("{PREFIX}{key}"), text.to_owned());
    let violation = "would violate PodSecurity \"restricted:v1.0\": runAsNonRoot != true (pod or container \"c\" must \
                     set securityContext.runAsNonRoot=true)";
    let expected = [
        note("enforce-policy", "baseline:latest"),
        note("audit-violations", violation),
    ];
    assert_eq!(last.audit, expected);
}

/// A genuine server answers the same of so many Pods, if it is fast enough.
#[cfg(feature = "load")]
#[tokio::test(start_paused = true)]
async fn of_many_pods_those_of_other_controllers_are_looked_at_first() {
    let bench = Bench::new().await;
    let load = lariat_cluster::Load::pods(3100).namespaces(1);
    bench.cluster.load(load).await;
    let spaces = bench.names("/api/v1/namespaces").await;
    let space = spaces
        .iter()
        .find(|name| name.ends_with("-00"))
        .expect("a namespace");
    let mut last = pod("bare", &json!({"spec": {"hostPID": true}}));
    last["metadata"]["name"] = "zz".into();
    let path = format!("/api/v1/namespaces/{space}");
    let created = bench.post(&format!("{path}/pods"), &last).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let labels =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    let answer = bench.merge(&path, labels).await;
    let warnings: Vec<_> = answer.headers.get_all("warning").into_iter().collect();
    assert_eq!(
        warnings,
        [
            "299 - \"new PodSecurity enforce level only checked against the first 3000 of 3101 existing pods\"",
            &format!(
                "299 - \"existing pods in namespace \\\"{space}\\\" violate the new PodSecurity enforce level \\\"baseline:latest\\\"\""
            ),
            "299 - \"zz: host namespaces\"",
        ]
    );
}
