//! Roles and bindings that would grant what their writer may not do.
//!
//! Source: the `policybased` storages in `k8s.io/kubernetes/pkg/registry/rbac`.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_core::ObjectKey;
use serde_json::{Value, json};

use crate::access::{Attributes, Decision, MASTERS, Mode, Subject, User, missing};
use crate::server::Server;
use crate::status::ApiError;
use crate::wire::route::Target;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Checks that a user may grant what a role or binding grants.
///
/// # Errors
///
/// The user lacks a permission that is granted, and may not grant others either.
pub(super) fn check(
    server: &Server,
    resource: &Resource,
    user: &User,
    object: &Object,
) -> Result<(), ApiError> {
    // As EscalationAllowed. In the other modes everything is allowed, and so are `escalate` and `bind`.
    if resource.group != GROUP || server.access.mode != Mode::Rbac || user.belongs_to(MASTERS) {
        return Ok(());
    }
    let name = metadata_text(object, "name");
    let namespace = Some(metadata_text(object, "namespace")).filter(|name| !name.is_empty());
    let grant = Grant {
        server,
        user,
        namespace,
    };
    let rules = match object.get("roleRef") {
        None if grant.may("escalate", &resource.plural, name, namespace) => return Ok(()),
        None => grant.of_role(object),
        Some(role) => {
            let text = |member: &str| role[member].as_str().unwrap_or_default();
            let (plural, within) = match text("kind") {
                "ClusterRole" => ("clusterroles", None),
                _ => ("roles", namespace),
            };
            if grant.may("bind", plural, text("name"), namespace) {
                return Ok(());
            }
            grant.rules(plural, text("name"), within)?
        }
    };
    match missing(&server.store, user, namespace, &rules) {
        Some(reason) => Err(ApiError::forbidden(resource, name, &reason)),
        None => Ok(()),
    }
}

/// What is granted, by whom and where.
struct Grant<'a> {
    server: &'a Server,
    user: &'a User,
    namespace: Option<&'a str>,
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

    /// Returns the rules of a role; an aggregated role may come to grant anything.
    fn of_role(&self, role: &Object) -> Vec<Value> {
        let rules = role.get("rules").and_then(Value::as_array);
        let mut rules = rules.cloned().unwrap_or_default();
        // As fullAuthority in clusterrole/policybased: who may add labels to a role could fill this one.
        if self.namespace.is_none() && role.contains_key("aggregationRule") {
            rules.push(json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}));
            rules.push(json!({"nonResourceURLs": ["*"], "verbs": ["*"]}));
        }
        rules
    }

    /// Returns what a stored role grants.
    fn rules(
        &self,
        plural: &str,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<Value>, ApiError> {
        let catalog = self.server.kinds.catalog();
        let resource = catalog.resource(GROUP, "v1", plural);
        let resource = resource.ok_or_else(ApiError::page_not_found)?;
        let key = match namespace {
            Some(namespace) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster(name),
        };
        let stored = self.server.store.get(resource.table, &key);
        let stored = stored.ok_or_else(|| ApiError::not_found(resource, name))?;
        let rules = stored.object().remove("rules");
        Ok(rules
            .and_then(|rules| rules.as_array().cloned())
            .unwrap_or_default())
    }
}
