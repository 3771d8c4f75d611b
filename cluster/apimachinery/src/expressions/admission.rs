//! The types that expressions of admission see.
//!
//! Source: `BuildRequestType` and `BuildNamespaceType` in `admission/plugin/cel/compile.go`.

use std::sync::{Arc, LazyLock};

use super::object::Object;
use super::types::Type;

static REQUEST: LazyLock<Type> = LazyLock::new(|| {
    let text = |name| (name, Type::Text);
    let kind = object(
        "kubernetes.GroupVersionKind",
        &[text("group"), text("version"), text("kind")],
    );
    let resource = object(
        "kubernetes.GroupVersionResource",
        &[text("group"), text("version"), text("resource")],
    );
    let user = object(
        "kubernetes.UserInfo",
        &[
            text("username"),
            text("uid"),
            ("groups", texts()),
            ("extra", Type::map(Type::Text, texts())),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        &[
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            text("subResource"),
            ("requestKind", kind),
            ("requestResource", resource),
            text("requestSubResource"),
            text("name"),
            text("namespace"),
            text("operation"),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
});

static NAMESPACE: LazyLock<Type> = LazyLock::new(|| {
    let text = |name| (name, Type::Text);
    let by_name = || Type::map(Type::Text, Type::Text);
    let spec = object("kubernetes.NamespaceSpec", &[("finalizers", texts())]);
    let condition = object(
        "kubernetes.NamespaceCondition",
        &[
            text("status"),
            text("type"),
            ("lastTransitionTime", Type::Timestamp),
            text("message"),
            text("reason"),
        ],
    );
    let status = object(
        "kubernetes.NamespaceStatus",
        &[("conditions", Type::list(condition)), text("phase")],
    );
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        &[
            text("name"),
            text("generateName"),
            text("namespace"),
            ("labels", by_name()),
            ("annotations", by_name()),
            text("UID"),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            text("resourceVersion"),
            ("finalizers", texts()),
        ],
    );
    object(
        "kubernetes.Namespace",
        &[("metadata", metadata), ("spec", spec), ("status", status)],
    )
});

/// Returns the type of `request`.
pub(crate) fn request() -> Type {
    REQUEST.clone()
}

/// Returns the type of `namespaceObject`.
pub(crate) fn namespace() -> Type {
    NAMESPACE.clone()
}

fn texts() -> Type {
    Type::list(Type::Text)
}

fn object(name: &str, fields: &[(&str, Type)]) -> Type {
    let fields = fields.iter().cloned();
    let fields = fields.map(|(name, kind)| (name.to_owned(), kind));
    Type::Object(Arc::new(Object::new(name, fields)))
}
