//! A ServiceAccount with its roles and bindings, as YAML.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lariat_core::ObjectKey;
use serde_json::{Value, json};

use super::permission::Permission;
use super::policy;
use crate::yaml;

/// A ServiceAccount with its roles and bindings; the `Display` is YAML for kubectl.
///
/// Created by [`Operator::manifests`](crate::Operator::manifests). A program that writes roles or bindings may need
/// permissions that cannot be derived; a comment at the top names them.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifests {
    documents: Vec<Value>,
    hints: Vec<String>,
}

/// The API group of roles and bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

/// The verbs of writes.
const WRITES: [&str; 4] = ["create", "patch", "update", "*"];

/// The permissions that the API server requires for writing roles and bindings.
///
/// They come besides the permission to write: the written resources, the required verb, and what it is required on.
const GIVES_AWAY: [([&str; 2], &str, &str); 2] = [
    (["clusterroles", "roles"], "escalate", "them"),
    (
        ["clusterrolebindings", "rolebindings"],
        "bind",
        "the roles they bind",
    ),
];

impl Manifests {
    pub(crate) fn new(name: &str, account: &ObjectKey, permissions: &[Permission]) -> Self {
        let subject = json!({
            "kind": "ServiceAccount", "name": account.name(), "namespace": account.namespace().unwrap_or("default"),
        });
        let metadata = json!({"name": subject["name"], "namespace": subject["namespace"]});
        let mut documents =
            vec![json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})];
        for (namespace, permissions) in by_namespace(permissions) {
            documents.extend(role(name, namespace, &permissions, &subject));
        }
        let hints = hints(permissions);
        Self { documents, hints }
    }

    /// Returns the objects as JSON.
    #[must_use]
    pub fn documents(&self) -> &[Value] {
        &self.documents
    }
}

/// Returns the permissions that the derived roles may lack, as comments.
///
/// A program can grant only permissions that it has itself.
fn hints(permissions: &[Permission]) -> Vec<String> {
    let has = |permission: &Permission, verbs: &[&str]| {
        let mut given = permission.verbs.keys();
        given.any(|verb| verbs.contains(&verb.as_str()))
    };
    let of_roles = || {
        permissions
            .iter()
            .filter(|each| each.group == GROUP && each.subresource.is_empty())
    };
    let hint = |(resources, verb, on): ([&str; 2], &str, &str)| {
        let is_written =
            |each: &&Permission| resources.contains(&&*each.resource) && has(each, &WRITES);
        let written: BTreeSet<&str> = of_roles()
            .filter(is_written)
            .map(|each| &*each.resource)
            .collect();
        // A program that declares the verb has thought about it, and needs no reminder.
        let is_allowed = of_roles().any(|each| has(each, &[verb, "*"]));
        let written = Vec::from_iter(written).join(" and ");
        (!written.is_empty() && !is_allowed).then(|| {
            format!(
                "It writes {written}: the API server lets it grant only permissions that it has itself,\n\
                 or requires the verb {verb:?} on {on}, which must be added by hand."
            )
        })
    };
    GIVES_AWAY.into_iter().filter_map(hint).collect()
}

/// Returns the permissions by namespace; under `None`, those for all namespaces.
fn by_namespace(permissions: &[Permission]) -> BTreeMap<Option<&str>, Vec<Permission>> {
    let mut found: BTreeMap<Option<&str>, Vec<Permission>> = BTreeMap::new();
    for permission in permissions {
        let named = permission.namespaces.iter();
        let mut namespaces: BTreeSet<Option<&str>> = named.map(|name| Some(&**name)).collect();
        // No namespaces means all of them, which needs a ClusterRole.
        if namespaces.is_empty() {
            namespaces.insert(None);
        }
        for namespace in namespaces {
            found.entry(namespace).or_default().push(permission.clone());
        }
    }
    found
}

/// Returns a role and its binding, for one namespace or for all.
fn role(
    name: &str,
    namespace: Option<&str>,
    permissions: &[Permission],
    subject: &Value,
) -> [Value; 2] {
    let kind = if namespace.is_some() {
        "Role"
    } else {
        "ClusterRole"
    };
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    let api_version = format!("{GROUP}/v1");
    [
        json!({
            "apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": policy::rules(permissions),
        }),
        json!({
            "apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name}, "subjects": [subject],
        }),
    ]
}

impl fmt::Display for Manifests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.hints.iter().flat_map(|hint| hint.lines()) {
            writeln!(f, "# {line}")?;
        }
        for (n, document) in self.documents.iter().enumerate() {
            write!(
                f,
                "{}{}",
                if n > 0 { "---\n" } else { "" },
                yaml::document(document)
            )?;
        }
        Ok(())
    }
}
