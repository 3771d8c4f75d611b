//! The objects that do not depend on how a cluster is configured.

use std::sync::LazyLock;

use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use super::{api_services, roles};
use crate::server::Server;
use crate::store::{Template, Write};

/// The namespaces every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The priority levels of API priority and fairness, and their flow schemas.
const FLOW: &str = include_str!("flow.txt");

/// The classes of priority, with their values and descriptions.
const PRIORITIES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
];

/// The parts of a control plane that it reports on.
const COMPONENTS: [&str; 3] = ["controller-manager", "scheduler", "etcd-0"];

/// The addresses that Services get.
const SERVICE_RANGE: &str = "10.96.0.0/12";

/// An encoded object, and the table it belongs in.
struct Seed {
    table: String,
    template: Template,
}

/// The objects of every cluster.
static BASE: LazyLock<Vec<Seed>> = LazyLock::new(|| {
    let mut all: Vec<Seed> = NAMESPACES
        .iter()
        .map(|name| seed("namespaces", namespace(name)))
        .collect();
    let services = api_services::built_in();
    all.extend(services.map(|service| seed("apiservices.apiregistration.k8s.io", service)));
    all.extend(PRIORITIES.iter().map(priority_class));
    let components = COMPONENTS.iter();
    all.extend(components.map(|name| seed("componentstatuses", component(name))));
    all.push(seed("servicecidrs.networking.k8s.io", service_range()));
    all
});

/// The authorization and flow control objects: roles, bindings, flow schemas, priority levels.
static POLICY: LazyLock<Vec<Seed>> = LazyLock::new(|| {
    let mut all: Vec<Seed> = flow().collect();
    let roles = roles::all().into_iter();
    all.extend(roles.map(|(plural, object)| seed(&format!("{plural}.{}", roles::GROUP), object)));
    all
});

/// Creates the objects that are missing, those about policy only `with_policy`.
pub(super) fn create(server: &Server, with_policy: bool) {
    let now = server.clock.now();
    let policy = with_policy.then(|| POLICY.iter()).into_iter().flatten();
    for Seed { table, template } in BASE.iter().chain(policy) {
        let table = server.store.table(table);
        let draft = template.draft(&server.random.uid(), &now);
        let write = Write::new(table, template.key(), None, Some(draft));
        // It is refused if there is one.
        drop(server.store.commit(write));
    }
}

fn seed(table: &str, object: Value) -> Seed {
    let object = match object {
        Value::Object(object) => object,
        _ => Object::new(),
    };
    Seed {
        table: table.to_owned(),
        template: Template::new(object),
    }
}

fn namespace(name: &str) -> Value {
    json!({
        "kind": "Namespace", "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    })
}

fn priority_class((name, value, description): &(&str, i64, &str)) -> Seed {
    let object = json!({
        "kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {"name": name, "generation": 1},
        "value": value, "description": description, "preemptionPolicy": "PreemptLowerPriority",
    });
    seed("priorityclasses.scheduling.k8s.io", object)
}

fn component(name: &str) -> Value {
    json!({
        "kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
    })
}

fn service_range() -> Value {
    json!({
        "kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": "kubernetes"}, "spec": {"cidrs": [SERVICE_RANGE]},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "lastTransitionTime": Template::TIME, "reason": "",
            "message": "Kubernetes Service CIDR is ready",
        }]},
    })
}

/// Reads the table of priority levels and flow schemas.
fn flow() -> impl Iterator<Item = Seed> {
    let lines = FLOW
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| {
        // The third part is JSON, which has spaces of its own.
        let mut words = line.splitn(3, ' ');
        let (kind, name) = (words.next(), words.next().unwrap_or_default());
        let spec: Value = words
            .next()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let is_schema = kind == Some("FlowSchema");
        let level = spec.pointer("/priorityLevelConfiguration/name").cloned();
        let mut object = json!({
            "kind": kind, "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "metadata": {
                "name": name, "generation": 1,
                "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"},
            },
            "spec": spec, "status": {},
        });
        if !is_schema {
            return seed("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", object);
        }
        object["status"] = json!({"conditions": [{
            "type": "Dangling", "status": "False", "lastTransitionTime": Template::TIME,
            "reason": "Found",
            "message": format!(
                "This FlowSchema references the PriorityLevelConfiguration object named {} and it exists",
                level.unwrap_or_default()
            ),
        }]});
        seed("flowschemas.flowcontrol.apiserver.k8s.io", object)
    })
}
