//! Evaluating the stored roles and bindings.
//!
//! Source: `k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac`.

use std::collections::HashSet;

use lariat_core::ObjectKey;
use serde_json::Value;

use super::attributes::{Attributes, Decision, Subject};
use super::user::User;
use crate::store::{Range, Store};
use crate::wire::route::Target;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Decides by the bindings of the cluster and of the namespace in the request.
pub(super) fn decide(store: &Store, user: &User, attributes: &Attributes) -> Decision {
    let namespace = match &attributes.subject {
        Subject::Path(_) => None,
        Subject::Resource(target) => target.namespace.as_deref(),
    };
    let grants = grants(store, user, namespace);
    let allowed = grants.iter().find(|grant| {
        let mut rules = grant.rules.iter().flatten();
        rules.any(|rule| allows(rule, attributes))
    });
    if let Some(grant) = allowed {
        return Decision::Allowed(grant.reason(user));
    }
    let mut reason = missing(&grants);
    if !reason.is_empty() {
        reason.insert_str(0, "RBAC: ");
    }
    Decision::NoOpinion(reason)
}

/// Returns all rules for a namespace, and which roles are missing.
///
/// Without a namespace they are those for cluster-scoped objects.
pub(super) fn all_rules(
    store: &Store,
    user: &User,
    namespace: Option<&str>,
) -> (Vec<Value>, String) {
    let grants = grants(store, user, namespace);
    let missing = missing(&grants);
    let rules = grants.into_iter().filter_map(|grant| grant.rules.ok());
    (rules.flatten().collect(), missing)
}

/// The rules of a user in a namespace.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) resources: Vec<Value>,
    /// With paths that are no resources.
    pub(crate) paths: Vec<Value>,
    /// The missing roles, in one text; empty if none is.
    pub(crate) missing: String,
}

/// Returns the rules for a namespace.
pub(super) fn rules(store: &Store, user: &User, namespace: &str) -> Rules {
    let (mut rules, missing) = all_rules(store, user, Some(namespace));
    let mut seen = HashSet::new();
    rules.retain(|rule| seen.insert(rule.clone()));
    let (paths, resources) = rules
        .into_iter()
        .partition(|rule| !texts(rule, "nonResourceURLs").is_empty());
    Rules {
        resources,
        paths,
        missing,
    }
}

/// Returns the error about bound roles that are missing, each once.
// `Aggregate.Error`.
fn missing(grants: &[Grant]) -> String {
    let mut errors: Vec<&str> = Vec::new();
    for error in grants.iter().filter_map(|grant| grant.rules.as_ref().err()) {
        if !errors.contains(&error.as_str()) {
            errors.push(error);
        }
    }
    match errors[..] {
        [] => String::new(),
        [error] => error.to_owned(),
        _ => format!("[{}]", errors.join(", ")),
    }
}

/// A binding that has a user among its subjects, and the rules of its role.
struct Grant {
    binding: Value,
    kind: &'static str,
    /// An error if there is no such role.
    rules: Result<Vec<Value>, String>,
}

impl Grant {
    /// Returns the reason for which something is allowed.
    fn reason(&self, user: &User) -> String {
        let text = |pointer| {
            let text = self.binding.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default()
        };
        let name = match text("/metadata/namespace") {
            "" => text("/metadata/name").to_owned(),
            namespace => format!("{}/{namespace}", text("/metadata/name")),
        };
        let subject = self.binding["subjects"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|subject| applies(subject, user, text("/metadata/namespace")))
            .map(|subject| describe(subject, text("/metadata/namespace")))
            .unwrap_or_default();
        format!(
            "RBAC: allowed by {} {name:?} of {} {:?} to {subject}",
            self.kind,
            text("/roleRef/kind"),
            text("/roleRef/name"),
        )
    }
}

/// Formats a subject of a binding in some namespace.
fn describe(subject: &Value, namespace: &str) -> String {
    let text = |member: &str| subject[member].as_str().unwrap_or_default();
    match text("kind") {
        "ServiceAccount" => {
            let namespace = match text("namespace") {
                "" => namespace,
                own => own,
            };
            let account = format!("{}/{namespace}", text("name"));
            format!("ServiceAccount {account:?}")
        }
        kind => format!("{kind} {:?}", text("name")),
    }
}

fn grants(store: &Store, user: &User, namespace: Option<&str>) -> Vec<Grant> {
    let bindings = |plural: &str, kind: &'static str, namespace: Option<&str>| {
        let range = Range {
            namespace,
            ..Range::default()
        };
        let table = store.table(&format!("{plural}.{GROUP}"));
        let page = store.range(table, &range);
        let objects = page.map(|page| page.objects).unwrap_or_default();
        let own = move |binding: &Value| {
            let subjects = binding["subjects"].as_array();
            let namespace = namespace.unwrap_or_default();
            subjects
                .into_iter()
                .flatten()
                .any(|subject| applies(subject, user, namespace))
        };
        let bindings = objects
            .into_iter()
            .map(|stored| Value::Object(stored.object()))
            .filter(own);
        let grant = |binding: Value| Grant {
            rules: role_rules(store, &binding["roleRef"], namespace),
            binding,
            kind,
        };
        bindings.map(grant).collect::<Vec<Grant>>()
    };
    // As VisitRulesFor: those of the cluster first, so that they are the reason where both allow.
    let mut grants = bindings("clusterrolebindings", "ClusterRoleBinding", None);
    if let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) {
        grants.extend(bindings("rolebindings", "RoleBinding", Some(namespace)));
    }
    grants
}

/// Returns whether a subject of a binding is the user or a group of theirs.
fn applies(subject: &Value, user: &User, namespace: &str) -> bool {
    let text = |member: &str| subject[member].as_str().unwrap_or_default();
    match text("kind") {
        "User" => text("name") == user.name(),
        "Group" => user.belongs_to(text("name")),
        "ServiceAccount" => {
            // As appliesToUser: a subject without a namespace is in that of the binding.
            let namespace = match text("namespace") {
                "" => namespace,
                namespace => namespace,
            };
            let account = User::service_account(namespace, text("name"));
            account.name() == user.name()
        }
        _ => false,
    }
}

fn role_rules(store: &Store, role: &Value, namespace: Option<&str>) -> Result<Vec<Value>, String> {
    let name = role["name"].as_str().unwrap_or_default();
    let (kind, key) = match role["kind"].as_str() {
        // Also for a RoleBinding, which grants such a role within its namespace.
        Some("ClusterRole") => ("clusterrole", ObjectKey::cluster(name)),
        _ => (
            "role",
            ObjectKey::namespaced(namespace.unwrap_or_default(), name),
        ),
    };
    let table = store.table(&format!("{kind}s.{GROUP}"));
    let stored = store.get(table, &key);
    let stored = stored.ok_or_else(|| format!("{kind}.{GROUP} {name:?} not found"))?;
    Ok(match stored.object().remove("rules") {
        Some(Value::Array(rules)) => rules,
        _ => Vec::new(),
    })
}

pub(super) fn texts<'a>(rule: &'a Value, member: &str) -> Vec<&'a str> {
    let list = rule[member].as_array();
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Returns whether a list names something, or everything.
fn names(rule: &Value, member: &str, wanted: &str) -> bool {
    texts(rule, member)
        .iter()
        .any(|each| *each == "*" || *each == wanted)
}

fn allows(rule: &Value, attributes: &Attributes) -> bool {
    names(rule, "verbs", &attributes.verb)
        && match &attributes.subject {
            Subject::Path(path) => allows_path(rule, path),
            Subject::Resource(target) => allows_resource(rule, target),
        }
}

fn allows_path(rule: &Value, path: &str) -> bool {
    let urls = texts(rule, "nonResourceURLs");
    urls.iter().any(|url| covers_path(url, path))
}

/// Returns whether a path of a rule covers another: it is the same, or ends with a star.
///
/// Source: `NonResourceURLMatches` in `k8s.io/kubernetes/pkg/apis/rbac/v1`. Several stars at the end are as one, which
/// also stands for nothing.
pub(super) fn covers_path(own: &str, path: &str) -> bool {
    own == path || own.ends_with('*') && path.starts_with(own.trim_end_matches('*'))
}

fn allows_resource(rule: &Value, target: &Target) -> bool {
    let resource = match &target.subresource {
        Some(subresource) => format!("{}/{subresource}", target.plural),
        None => target.plural.clone(),
    };
    // As ResourceMatches, in which `*/scale` is the subresource of every resource.
    let everywhere = target.subresource.as_ref().map(|name| format!("*/{name}"));
    let resources = names(rule, "resources", &resource)
        || everywhere.is_some_and(|any| texts(rule, "resources").contains(&any.as_str()));
    let resource_names = texts(rule, "resourceNames");
    // A request without a name is only allowed by rules without names.
    let name = target.name.as_deref().unwrap_or_default();
    resources
        && names(rule, "apiGroups", &target.group)
        && (resource_names.is_empty() || resource_names.contains(&name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
        json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
    }

    fn check(rule: &Value, verb: &str, path: &str, expected: bool) {
        let subject = match crate::wire::route::Route::parse(path) {
            crate::wire::route::Route::Objects(target) => Subject::Resource(target),
            _ => Subject::Path(path.to_owned()),
        };
        let verb = verb.to_owned();
        let attributes = Attributes { verb, subject };
        assert_eq!(allows(rule, &attributes), expected, "{rule} {path}");
    }

    #[test]
    fn rules_match_verbs_groups_resources_and_names() {
        let pods = rule(&[""], &["pods", "pods/log"], &["get", "list"]);
        check(&pods, "get", "/api/v1/namespaces/a/pods/b", true);
        check(&pods, "get", "/api/v1/namespaces/a/pods/b/log", true);
        check(&pods, "get", "/api/v1/namespaces/a/pods/b/status", false);
        check(&pods, "delete", "/api/v1/namespaces/a/pods/b", false);
        check(&pods, "get", "/apis/x/v1/namespaces/a/pods/b", false);
        check(&pods, "get", "/healthz", false);
        let scales = rule(&["*"], &["*/scale"], &["*"]);
        check(
            &scales,
            "patch",
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            true,
        );
        check(
            &scales,
            "patch",
            "/apis/apps/v1/namespaces/a/deployments/b",
            false,
        );
        let mut named = rule(&[""], &["configmaps"], &["get"]);
        named["resourceNames"] = json!(["x"]);
        check(&named, "get", "/api/v1/namespaces/a/configmaps/x", true);
        check(&named, "get", "/api/v1/namespaces/a/configmaps/y", false);
        let paths = json!({"verbs": ["get"], "nonResourceURLs": ["/apis/*", "/version"]});
        check(&paths, "get", "/apis", false);
        check(&paths, "get", "/apis/apps", true);
        check(&paths, "get", "/version", true);
        check(&paths, "get", "/metrics", false);
        let stars = json!({"verbs": ["get"], "nonResourceURLs": ["/a/**", "/b*/c*"]});
        check(&stars, "get", "/a/b", true);
        check(&stars, "get", "/a/", true);
        check(&stars, "get", "/a", false);
        check(&stars, "get", "/b*/cd", true);
        check(&stars, "get", "/bb/cd", false);
    }
}
