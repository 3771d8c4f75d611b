//! Roles and bindings that would grant what their writer may not do.
//!
//! Source: the `policybased` storages in `k8s.io/kubernetes/pkg/registry/rbac`.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use lariat_core::ObjectKey;
use serde_json::{Value, json};

use crate::access::{Attributes, Decision, MASTERS, Mode, Subject, User, missing};
use crate::server::Server;
use crate::status::ApiError;
use crate::wire::route::Target;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Checks that a user may grant the rules of a role or binding, which may have been another one before.
///
/// # Errors
///
/// The user lacks a permission that is granted, and may not grant others either.
pub(super) fn check(
    server: &Server,
    resource: &Resource,
    user: &User,
    old: Option<&Object>,
    object: &Object,
) -> Result<(), ApiError> {
    // As EscalationAllowed. In the other modes everything is allowed, and so are `escalate` and `bind`.
    if resource.group != GROUP || server.access.mode != Mode::Rbac || user.belongs_to(MASTERS) {
        return Ok(());
    }
    if old.is_some_and(|old| is_for_collector(old, object)) {
        return Ok(());
    }
    let name = metadata_text(object, "name");
    let namespace = Some(metadata_text(object, "namespace")).filter(|name| !name.is_empty());
    let grant = Grant { server, user };
    let rules = match object.get("roleRef") {
        None if grant.may("escalate", &resource.plural, name, namespace) => return Ok(()),
        None => rules_of(object),
        Some(role) => {
            let text = |member: &str| role[member].as_str().unwrap_or_default();
            let (plural, within) = match text("kind") {
                "ClusterRole" => ("clusterroles", None),
                _ => ("roles", namespace),
            };
            if grant.may("bind", plural, text("name"), namespace) {
                return Ok(());
            }
            let rules = grant.rules(plural, text("name"), within);
            rules.ok_or_else(|| ApiError::not_found(resource, text("name")))?
        }
    };
    if let Some(reason) = missing(&server.store, user, namespace, &rules) {
        return Err(ApiError::forbidden(resource, name, &reason));
    }
    // Who may label roles could fill an aggregated one with anything.
    let aggregates = old.into_iter().chain([object]).any(has_aggregation);
    if resource.plural == "clusterroles" && aggregates && !grant.has_everything() {
        let reason = "must have cluster-admin privileges to use the aggregationRule";
        return Err(ApiError::forbidden(resource, name, reason));
    }
    Ok(())
}

/// Returns whether a role is filled with the rules of others.
fn has_aggregation(role: &Object) -> bool {
    let selectors = role
        .get("aggregationRule")
        .map(|rule| &rule["clusterRoleSelectors"]);
    selectors
        .and_then(Value::as_array)
        .is_some_and(|all| !all.is_empty())
}

/// Returns whether a change is only about members that the garbage collector writes.
///
/// Source: `IsOnlyMutatingGCFields` in `k8s.io/kubernetes/pkg/registry/rbac`.
fn is_for_collector(old: &Object, object: &Object) -> bool {
    let rest = |object: &Object| {
        let mut rest = object.clone();
        let metadata = metadata_mut(&mut rest);
        for member in ["ownerReferences", "finalizers", "managedFields"] {
            metadata.remove(member);
        }
        rest
    };
    rest(old) == rest(object)
}

/// The rights that are granted, and who grants them.
struct Grant<'a> {
    server: &'a Server,
    user: &'a User,
}

impl Grant<'_> {
    fn may(&self, verb: &str, plural: &str, name: &str, namespace: Option<&str>) -> bool {
        let attributes = Attributes {
            verb: verb.to_owned(),
            subject: Subject::Resource(Target {
                group: GROUP.to_owned(),
                version: "*".to_owned(),
                plural: plural.to_owned(),
                namespace: namespace.map(str::to_owned),
                name: Some(name.to_owned()),
                ..Target::default()
            }),
        };
        let decision = self
            .server
            .access
            .decide(&self.server.store, self.user, &attributes);
        matches!(decision, Decision::Allowed(_))
    }

    /// Returns whether the user may do everything.
    // As fullAuthority in clusterrole/policybased.
    fn has_everything(&self) -> bool {
        let everything = [
            json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
            json!({"nonResourceURLs": ["*"], "verbs": ["*"]}),
        ];
        missing(&self.server.store, self.user, None, &everything).is_none()
    }

    /// Returns the rules of a stored role; `None` if there is none.
    fn rules(&self, plural: &str, name: &str, namespace: Option<&str>) -> Option<Vec<Value>> {
        let catalog = self.server.kinds.catalog();
        let resource = catalog.resource(GROUP, "v1", plural)?;
        let key = match namespace {
            Some(namespace) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster(name),
        };
        let stored = self.server.store.get(resource.table, &key)?;
        Some(rules_of(&stored.object()))
    }
}

/// Returns the rules of a role.
fn rules_of(role: &Object) -> Vec<Value> {
    let rules = role.get("rules").and_then(Value::as_array);
    rules.cloned().unwrap_or_default()
}
