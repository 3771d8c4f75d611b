use jiff::Timestamp;
use serde_json::{Value, json};

#[cfg(feature = "descriptions")]
use super::columns::references;
use super::columns::{COLUMNS, TABLE, columns_of};
use super::functions::FUNCTIONS;
use crate::printers::source::Row;
use crate::store::{Retention, Store};

const NOW: &str = "2024-01-01T01:00:00Z";
const MINUTES_AGO: &str = "2024-01-01T00:55:00Z";

#[expect(
    clippy::needless_pass_by_value,
    reason = "values of a test are written in place"
)]
fn check(group: &str, plural: &str, object: Value, expected: Value) {
    let mut object = object;
    object["metadata"]["creationTimestamp"] = MINUTES_AGO.into();
    assert_eq!(cells(group, plural, &object), expected, "{plural}");
}

fn cells(group: &str, plural: &str, object: &Value) -> Value {
    let now: Timestamp = NOW.parse().expect("it is a time");
    let columns = columns_of(group, plural);
    let cells = columns
        .iter()
        .map(|column| column.source.cell(Row { object, now }));
    cells.collect()
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
fn the_table_names_resources_that_exist_and_functions_that_are_used() {
    let store = Store::new(Retention {
        changes: 1,
        bytes: 0,
    });
    let catalog = lariat_apimachinery::kinds::Kinds::new(|name| store.table(name)).catalog();
    let known: Vec<String> = catalog.all().map(|resource| resource.qualified()).collect();
    for name in COLUMNS.keys().filter(|name| !name.starts_with('*')) {
        assert!(known.iter().any(|each| each == name), "{name}");
    }
    for (name, _) in FUNCTIONS {
        assert!(TABLE.contains(&format!("{name}(")), "{name}");
    }
    assert!(FUNCTIONS.is_sorted_by_key(|(name, _)| name));
}

#[cfg(feature = "descriptions")]
#[test]
fn columns_have_the_descriptions_of_fields_that_exist() {
    let found = crate::descriptions::of_fields(references());
    for (of, field) in references() {
        assert!(found.contains_key(&(of, field)), "{of}.{field}");
    }
    let ready = &columns_of("", "pods")[1];
    let expected = "The aggregate readiness state of this pod for accepting traffic.";
    assert_eq!((&*ready.name, &*ready.description), ("Ready", expected));
}

#[test]
fn cells_of_objects_without_content_are_of_the_type_of_their_column() {
    for (name, columns) in COLUMNS.iter() {
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        for object in [json!({}), json!({"spec": 1, "status": [], "metadata": "x"})] {
            let cells = cells(group, plural, &object);
            for (at, column) in columns.iter().enumerate() {
                let cell = &cells[at];
                let is_fitting = match &*column.kind {
                    "integer" => cell.is_number(),
                    "boolean" => cell.is_boolean() || column.name == "Suspend",
                    _ => !cell.is_null(),
                };
                assert!(is_fitting, "{name}: {}: {cell}", column.name);
            }
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
fn more_hosts_are_counted_only_if_rules_follow() {
    for (hosts, expected) in [
        (vec![], "*"),
        (vec!["", ""], "*"),
        (vec!["a", "b", "c"], "a,b,c"),
        (vec!["", "a", "b", "c"], "a,b,c"),
        (vec!["", "a", "", "b"], "a,b"),
        (vec!["a", "b", "c", ""], "a,b,c + 1 more..."),
        (vec!["", "", "a", "b", "c", "d"], "a,b,c + 3 more..."),
    ] {
        let rules: Value = hosts.iter().map(|host| json!({"host": host})).collect();
        let ingress = json!({"metadata": {"name": "i"}, "spec": {"rules": rules}});
        let shown = cells("networking.k8s.io", "ingresses", &ingress);
        assert_eq!(shown[2], expected, "{hosts:?}");
    }
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
