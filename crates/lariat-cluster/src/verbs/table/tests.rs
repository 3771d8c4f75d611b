use jiff::Timestamp;
use serde_json::{Value, json};

use super::printers::printer;
use super::row::Row;

const NOW: &str = "2024-01-01T01:00:00Z";
const MINUTES_AGO: &str = "2024-01-01T00:55:00Z";

#[expect(
    clippy::needless_pass_by_value,
    reason = "values of a test are written in place"
)]
fn check(group: &str, plural: &str, object: Value, expected: Value) {
    let now: Timestamp = NOW.parse().expect("it is a time");
    let mut object = object;
    object["metadata"]["creationTimestamp"] = MINUTES_AGO.into();
    let printer = printer(group, plural);
    let cells = (printer.cells)(Row::new(&object, now));
    assert_eq!(cells.len(), printer.columns.len(), "{plural}");
    assert_eq!(Value::from(cells), expected, "{plural}");
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "values of a test are written in place"
)]
fn check_pod(spec: Value, status: Value, ready: &str, reason: &str, restarts: &str) {
    let pod = json!({"metadata": {"name": "p"}, "spec": spec, "status": status});
    let none = "<none>";
    let expected = json!(["p", ready, reason, restarts, "5m", none, none, none, none]);
    check("", "pods", pod, expected);
}

#[test]
fn every_row_has_a_cell_for_each_column_even_if_the_object_is_empty() {
    let now: Timestamp = NOW.parse().unwrap();
    let store = crate::store::Store::new(1);
    let catalog = lariat_apimachinery::kinds::Kinds::new(|name| store.table(name)).catalog();
    for resource in catalog.each_table() {
        let printer = printer(&resource.group, &resource.plural);
        for object in [json!({}), json!({"spec": 1, "status": [], "metadata": "x"})] {
            let cells = (printer.cells)(Row::new(&object, now));
            assert_eq!(cells.len(), printer.columns.len(), "{}", resource.plural);
        }
    }
}

#[test]
fn pods_show_what_holds_them_up() {
    let one = json!({"containers": [{"name": "a"}]});
    check_pod(
        one.clone(),
        json!({"phase": "Pending"}),
        "0/1",
        "Pending",
        "0",
    );
    let running = json!({"phase": "Running", "containerStatuses": [
        {"name": "a", "ready": true, "restartCount": 2, "state": {"running": {}},
         "lastState": {"terminated": {"finishedAt": MINUTES_AGO}}},
    ]});
    check_pod(one.clone(), running, "1/1", "Running", "2 (5m ago)");
    let waiting = json!({"phase": "Running", "containerStatuses": [
        {"name": "a", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
    ]});
    check_pod(one.clone(), waiting, "0/1", "CrashLoopBackOff", "3");
    let killed = json!({"phase": "Failed", "containerStatuses": [
        {"name": "a", "state": {"terminated": {"exitCode": 137, "signal": 9}}},
    ]});
    check_pod(one.clone(), killed, "0/1", "Signal:9", "0");
    let initializing = json!({"phase": "Pending", "initContainerStatuses": [
        {"name": "i", "state": {"running": {}}},
    ]});
    let mut spec = one;
    spec["initContainers"] = json!([{"name": "i"}, {"name": "j"}]);
    check_pod(spec, initializing, "0/1", "Init:0/2", "0");
    let sidecar = json!({"containers": [{"name": "a"}],
        "initContainers": [{"name": "s", "restartPolicy": "Always"}]});
    let status = json!({"phase": "Running",
        "initContainerStatuses": [
            {"name": "s", "started": true, "ready": true, "restartCount": 1, "state": {"running": {}}},
        ],
        "containerStatuses": [{"name": "a", "ready": true, "state": {"running": {}}}]});
    check_pod(sidecar, status, "2/2", "Running", "1");
}

#[test]
fn workloads_show_their_progress() {
    let spec = json!({
        "replicas": 2, "selector": {"matchLabels": {"b": "1"}, "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
        ]},
        "template": {"spec": {"containers": [
            {"name": "c", "image": "i"}, {"name": "d", "image": "j"},
        ]}},
    });
    let set = json!({"metadata": {"name": "n"}, "spec": spec, "status": {"readyReplicas": 1}});
    let selector = "a in (x,y),b=1";
    let cells = json!(["n", "1/2", 0, 0, "5m", "c,d", "i,j", selector]);
    check("apps", "deployments", set.clone(), cells);
    let cells = json!(["n", 2, 0, 1, "5m", "c,d", "i,j", selector]);
    check("apps", "replicasets", set.clone(), cells);
    check(
        "apps",
        "statefulsets",
        set,
        json!(["n", "1/2", "5m", "c,d", "i,j"]),
    );
    let job = json!({
        "metadata": {"name": "j"}, "spec": {"completions": 3},
        "status": {
            "succeeded": 3, "startTime": "2024-01-01T00:00:00Z",
            "completionTime": "2024-01-01T00:02:05Z",
            "conditions": [{"type": "Complete", "status": "True"}],
        },
    });
    check(
        "batch",
        "jobs",
        job,
        json!(["j", "Complete", "3/3", "2m5s", "5m", "", "", "<none>"]),
    );
}

#[test]
fn services_show_how_they_are_reached() {
    let service = |spec: Value, status: Value| json!({"metadata": {"name": "s"}, "spec": spec, "status": status});
    let ports =
        json!([{"port": 80, "protocol": "TCP", "nodePort": 3000}, {"port": 53, "protocol": "UDP"}]);
    let spec = json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1", "ports": ports});
    let cells = |address: &str| {
        let ports = "80:3000/TCP,53/UDP";
        json!([
            "s",
            "LoadBalancer",
            "10.0.0.1",
            address,
            ports,
            "5m",
            "<none>"
        ])
    };
    check(
        "",
        "services",
        service(spec.clone(), json!({})),
        cells("<pending>"),
    );
    let status = json!({"loadBalancer": {"ingress": [{"hostname": "h"}, {"ip": "1.2.3.4"}]}});
    check("", "services", service(spec, status), cells("1.2.3.4,h"));
    let headless = json!({"type": "ClusterIP", "clusterIP": "None", "selector": {"a": "b"}});
    let expected = json!(["s", "ClusterIP", "None", "<none>", "<none>", "5m", "a=b"]);
    check("", "services", service(headless, json!({})), expected);
}

#[test]
fn kinds_without_columns_show_when_they_were_created() {
    let role = json!({"metadata": {"name": "r"}});
    check(
        "rbac.authorization.k8s.io",
        "roles",
        role,
        json!(["r", MINUTES_AGO]),
    );
}

#[test]
fn events_show_what_they_are_about() {
    let event = json!({
        "metadata": {"name": "e"}, "type": "Normal", "reason": "Started", "note": " up \n",
        "regarding": {"kind": "Pod", "name": "p"}, "eventTime": "2024-01-01T00:59:00.000000Z",
        "reportingController": "demo", "reportingInstance": "demo-1",
    });
    let cells = json!([
        "60s",
        "Normal",
        "Started",
        "pod/p",
        "",
        "demo, demo-1",
        "up",
        "60s",
        1,
        "e",
    ]);
    check("events.k8s.io", "events", event, cells);
}
