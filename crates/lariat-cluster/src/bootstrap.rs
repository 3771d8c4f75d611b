//! What every cluster begins with: namespaces, and with RBAC roles and bindings.
//!
//! Source: `k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy`, the parts people bind to.

use lariat_core::ObjectKey;
use serde_json::{Value, json};

use crate::access::rule;
use crate::server::Server;
use crate::store::{Draft, Write};

/// The namespaces every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 6] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "patch",
    "update",
];

/// Creates the namespaces that are missing.
pub(crate) fn create_namespaces(server: &Server) {
    for name in NAMESPACES {
        let object = json!({
            "kind": "Namespace", "apiVersion": "v1",
            "metadata": {
                "name": name, "uid": server.random.uid(), "creationTimestamp": server.clock.now(),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        });
        let key = ObjectKey::cluster(name);
        let write = Write::new(
            server.kinds.namespaces,
            &key,
            None,
            object.as_object().map(Draft::new),
        );
        // A cluster that continues from a data file has them already.
        drop(server.store.commit(write));
    }
}

/// Creates the roles and bindings that are missing.
pub(crate) fn create_roles(server: &Server) {
    let anything = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let anywhere = json!({"nonResourceURLs": ["*"], "verbs": ["*"]});
    role(server, "cluster-admin", &[anything, anywhere]);
    bind(server, "cluster-admin", &["system:masters"]);

    let public = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    role(server, "system:public-info-viewer", &[paths(&public)]);
    let everybody = ["system:authenticated", "system:unauthenticated"];
    bind(server, "system:public-info-viewer", &everybody);

    let discovery = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ];
    role(server, "system:discovery", &[paths(&discovery)]);
    bind(server, "system:discovery", &everybody[..1]);

    let reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
    let oneself = [
        rule(&["authorization.k8s.io"], &reviews, &["create"]),
        rule(
            &["authentication.k8s.io"],
            &["selfsubjectreviews"],
            &["create"],
        ),
    ];
    role(server, "system:basic-user", &oneself);
    bind(server, "system:basic-user", &everybody[..1]);

    role(server, "view", &view());
    role(server, "edit", &edit());
    role(server, "admin", &admin());
}

/// The groups of what people work with in a namespace.
const GROUPS: [&str; 7] = [
    "apps",
    "autoscaling",
    "batch",
    "discovery.k8s.io",
    "extensions",
    "networking.k8s.io",
    "policy",
];

const CORE: [&str; 10] = [
    "configmaps",
    "endpoints",
    "events",
    "persistentvolumeclaims",
    "pods",
    "pods/log",
    "pods/status",
    "replicationcontrollers",
    "serviceaccounts",
    "services",
];

fn view() -> Vec<Value> {
    let of_namespace = [
        "limitranges",
        "namespaces",
        "namespaces/status",
        "resourcequotas",
    ];
    vec![
        rule(&[""], &CORE, &READ),
        rule(&[""], &of_namespace, &READ),
        rule(&GROUPS, &["*"], &READ),
    ]
}

fn edit() -> Vec<Value> {
    let parts = [
        "pods/attach",
        "pods/eviction",
        "pods/exec",
        "pods/portforward",
        "pods/proxy",
        "secrets",
        "serviceaccounts/token",
        "services/proxy",
    ];
    let leases = ["leases"];
    let mut rules = view();
    rules.extend([
        rule(&[""], &CORE, &WRITE),
        rule(&[""], &parts, &[&READ[..], &WRITE[..]].concat()),
        rule(&[""], &["serviceaccounts"], &["impersonate"]),
        rule(&GROUPS, &["*"], &WRITE),
        rule(
            &["coordination.k8s.io"],
            &leases,
            &[&READ[..], &WRITE[..]].concat(),
        ),
    ]);
    rules
}

fn admin() -> Vec<Value> {
    let mut rules = edit();
    rules.extend([
        rule(
            &["authorization.k8s.io"],
            &["localsubjectaccessreviews"],
            &["create"],
        ),
        rule(
            &["rbac.authorization.k8s.io"],
            &["rolebindings", "roles"],
            &[&READ[..], &WRITE[..]].concat(),
        ),
    ]);
    rules
}

fn paths(urls: &[&str]) -> Value {
    json!({"nonResourceURLs": urls, "verbs": ["get"]})
}

fn role(server: &Server, name: &str, rules: &[Value]) {
    store(
        server,
        "clusterroles",
        name,
        json!({"kind": "ClusterRole", "rules": rules}),
    );
}

fn bind(server: &Server, role: &str, groups: &[&str]) {
    let group = "rbac.authorization.k8s.io";
    let subjects: Vec<Value> = groups
        .iter()
        .map(|name| json!({"apiGroup": group, "kind": "Group", "name": name}))
        .collect();
    let binding = json!({
        "kind": "ClusterRoleBinding", "subjects": subjects,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
    });
    store(server, "clusterrolebindings", role, binding);
}

fn store(server: &Server, plural: &str, name: &str, mut object: Value) {
    object["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    object["metadata"] = json!({
        "name": name, "uid": server.random.uid(), "creationTimestamp": server.clock.now(),
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    });
    let table = server
        .store
        .table(&format!("{plural}.rbac.authorization.k8s.io"));
    let key = ObjectKey::cluster(name);
    let write = Write::new(table, &key, None, object.as_object().map(Draft::new));
    // A cluster that continues from a data file has them already.
    drop(server.store.commit(write));
}
