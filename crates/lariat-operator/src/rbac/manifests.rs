//! Roles, bindings and the account they are for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lariat_core::ObjectKey;
use serde_json::{Value, json};

use super::permission::Permission;
use super::policy;
use crate::yaml;

/// A ServiceAccount, what it is allowed, and the bindings; it prints as YAML that kubectl applies.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifests {
    documents: Vec<Value>,
}

impl Manifests {
    pub(super) fn new(name: &str, account: &ObjectKey, permissions: &[Permission]) -> Self {
        let subject = json!({
            "kind": "ServiceAccount", "name": account.name(), "namespace": account.namespace().unwrap_or("default"),
        });
        let metadata = json!({"name": subject["name"], "namespace": subject["namespace"]});
        let mut documents =
            vec![json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})];
        for (namespace, permissions) in by_namespace(permissions) {
            documents.extend(role(name, namespace, &permissions, &subject));
        }
        Self { documents }
    }

    /// Returns the objects, as JSON.
    #[must_use]
    pub fn documents(&self) -> &[Value] {
        &self.documents
    }
}

/// Returns what is needed in each namespace; without a namespace, in all.
fn by_namespace(permissions: &[Permission]) -> BTreeMap<Option<&str>, Vec<Permission>> {
    let mut found: BTreeMap<Option<&str>, Vec<Permission>> = BTreeMap::new();
    for permission in permissions {
        let namespaces: BTreeSet<Option<&str>> = match permission.namespaces.is_empty() {
            true => [None].into(),
            false => permission
                .namespaces
                .iter()
                .map(|name| Some(name.as_str()))
                .collect(),
        };
        for namespace in namespaces {
            found.entry(namespace).or_default().push(permission.clone());
        }
    }
    found
}

fn role(
    name: &str,
    namespace: Option<&str>,
    permissions: &[Permission],
    subject: &Value,
) -> [Value; 2] {
    const GROUP: &str = "rbac.authorization.k8s.io";
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
