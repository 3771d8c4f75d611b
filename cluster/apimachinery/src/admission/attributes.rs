//! The attributes of a request, as admission sees them.

use lariat_core::{Gvk, Operation};
use serde_json::{Value, json};

/// A resource in one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceName {
    /// Its group, empty for the core group.
    pub group: String,
    /// Its version, such as `v1`.
    pub version: String,
    /// Its name in URLs.
    pub plural: String,
}

impl ResourceName {
    pub(super) fn json(&self) -> Value {
        json!({"group": self.group, "version": self.version, "resource": self.plural})
    }
}

/// The attributes of a request, as admission sees them.
#[derive(Debug, Clone)]
pub struct Attributes {
    /// The operation.
    pub operation: Operation,
    /// The resource.
    pub resource: ResourceName,
    /// The subresource; empty for the resource itself.
    pub subresource: String,
    /// The kind of the request's object; subresources may have their own kind.
    pub kind: Gvk,
    /// The namespace; for a Namespace its own name.
    pub namespace: String,
    /// The name, which is empty while it is to be generated.
    pub name: String,
    /// The options of the operation, as an object.
    pub options: Value,
    /// Whether the request is a dry run, so that nothing is stored.
    pub dry_run: bool,
    /// The user, as a `UserInfo`.
    pub user: Value,
}

impl Attributes {
    /// Returns the request of a review, without the objects it is about.
    ///
    /// `resource` and `kind` are those in which the reviewer sees them.
    pub(super) fn json(&self, resource: &ResourceName, kind: &Gvk) -> Value {
        let mut request = json!({
            "kind": kind_json(kind), "resource": resource.json(),
            "requestKind": kind_json(&self.kind), "requestResource": self.resource.json(),
            "operation": self.operation.as_str(), "userInfo": self.user, "dryRun": self.dry_run,
            "options": self.options,
        });
        // These have `omitempty` in Go, the others of the request are written even if empty.
        for (member, text) in [
            ("subResource", &self.subresource),
            ("requestSubResource", &self.subresource),
            ("namespace", &self.namespace),
            ("name", &self.name),
        ] {
            if !text.is_empty() {
                request[member] = text.as_str().into();
            }
        }
        request
    }
}

fn kind_json(kind: &Gvk) -> Value {
    json!({"group": kind.group(), "version": kind.version(), "kind": kind.kind()})
}
