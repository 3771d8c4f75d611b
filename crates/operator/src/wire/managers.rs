//! The field managers under which a reconciler applies.

use std::sync::Arc;

use kube::core::Status;
use serde::Deserialize;

use crate::names::manager_of;

/// The field managers of one reconciler of an operator.
#[derive(Debug, Clone)]
pub(crate) struct Managers {
    /// The field manager of the reconciler's applies, which nothing else uses.
    own: String,
    /// The field manager of the operator's merges, such as reported errors.
    ///
    /// Earlier releases applied under it too.
    operator: Arc<str>,
    /// Field managers under former names of the operator and the reconciler.
    former: Vec<String>,
}

impl Managers {
    pub(crate) fn new(operator: &Arc<str>, reconciler: &str) -> Self {
        Self {
            own: manager_of(operator, reconciler),
            operator: Arc::clone(operator),
            former: Vec::new(),
        }
    }

    /// Adds former names of the operator and the reconciler, of which each may have been combined with each.
    pub(crate) fn renamed_from(mut self, operators: &[Arc<str>], reconcilers: &[&str]) -> Self {
        let own = self.own.clone();
        let all = operators.iter().chain(std::iter::once(&self.operator));
        let of = |operator: &Arc<str>| {
            let under = |reconciler: &&str| manager_of(operator, reconciler);
            let names: Vec<String> = reconcilers.iter().map(under).collect();
            names
        };
        let combined = all.flat_map(of).filter(|name| *name != own);
        self.former = combined.collect();
        self.former
            .extend(operators.iter().map(ToString::to_string));
        self
    }

    pub(crate) fn own(&self) -> &str {
        &self.own
    }

    /// Returns whether all fields of a conflict are the operator's own.
    ///
    /// A merge makes the operator the owner of fields that it did not send: the defaults that a CRD has for the status.
    pub(super) fn own_all(&self, refusal: &Status) -> bool {
        let causes = refusal.details.iter().flat_map(|details| &details.causes);
        let mut conflicts = causes
            .filter(|cause| cause.reason == CONFLICT)
            .map(|cause| &*cause.message)
            .peekable();
        conflicts.peek().is_some() && conflicts.all(|message| self.is_named_in(message))
    }

    /// Parses the API server's `conflict with "name"`, which may have a suffix.
    fn is_named_in(&self, message: &str) -> bool {
        // Quoted like Go's `%q`, so that a name which begins with ours does not match.
        let names = [&*self.operator, &self.own].into_iter();
        names
            .chain(self.former.iter().map(|name| &**name))
            .any(|name| message.starts_with(&format!("conflict with {name:?}")))
    }

    /// Returns the field managers under which fields were applied before: the operator's name, and former names.
    ///
    /// Releases with one field manager for all reconcilers used the operator's. `answer` is an object with its managed
    /// fields.
    pub(super) fn left_former(&self, answer: &str, subresource: Option<&str>) -> Vec<&str> {
        let object: Object<'_> = serde_json::from_str(answer).unwrap_or_default();
        let has_applied = |name: &&str| {
            object.metadata.managed_fields.iter().any(|entry| {
                entry.operation == "Apply"
                    && entry.manager == **name
                    && entry.subresource == subresource.unwrap_or_default()
            })
        };
        let names = std::iter::once(&*self.operator);
        let names = names.chain(self.former.iter().map(|name| &**name));
        names.filter(has_applied).collect()
    }
}

/// The reason of a cause that names a field of another field manager.
pub(super) const CONFLICT: &str = "FieldManagerConflict";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    managed_fields: Vec<ManagedFieldsEntry<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ManagedFieldsEntry<'a> {
    #[serde(borrow)]
    manager: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    operation: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    subresource: std::borrow::Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn managers() -> Managers {
        Managers::new(&"op".into(), "one")
    }

    fn refusal(messages: &[&str]) -> Status {
        let cause =
            |message: &&str| json!({"reason": CONFLICT, "field": ".status.a", "message": message});
        let causes: Vec<Value> = messages.iter().map(cause).collect();
        let status = json!({"status": "Failure", "code": 409, "details": {"causes": causes}});
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn only_names_of_the_operator_are_its_own() {
        // The text of kube-apiserver.
        let merged = r#"conflict with "op" with subresource "status" using demo.dev/v1 at 2026-11-22T11:49:32Z"#;
        let applied = r#"conflict with "op" with subresource "status""#;
        let own = r#"conflict with "op/one" using demo.dev/v1"#;
        let sibling = r#"conflict with "op/two""#;
        let longer = r#"conflict with "operator""#;
        for (messages, expected) in [
            (&[merged][..], true),
            (&[merged, applied, own], true),
            (&[merged, sibling], false),
            (&[longer], false),
            (&[], false),
        ] {
            assert_eq!(
                managers().own_all(&refusal(messages)),
                expected,
                "{messages:?}"
            );
        }
    }

    #[test]
    fn what_was_applied_as_the_operator_is_found() {
        let object = |manager: &str, operation: &str, subresource: &str| {
            let entry = json!({"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": {}});
            json!({"metadata": {"name": "a", "managedFields": [entry]}}).to_string()
        };
        for (answer, expected) in [
            (object("op", "Apply", "status"), true),
            (object("op", "Update", "status"), false),
            (object("op", "Apply", ""), false),
            (object("op/one", "Apply", "status"), false),
            (json!({"metadata": {}}).to_string(), false),
        ] {
            let managers = managers();
            let former = managers.left_former(&answer, Some("status"));
            assert_eq!(!former.is_empty(), expected, "{answer}");
        }
        let names = [Arc::from("old")];
        let managers = managers().renamed_from(&names, &["one", "before"]);
        for (name, expected) in [
            ("old", true),
            ("old/one", true),
            ("old/before", true),
            ("op/before", true),
            ("op/one", false),
            ("old/two", false),
        ] {
            let answer = object(name, "Apply", "status");
            let former = managers.left_former(&answer, Some("status"));
            assert_eq!(!former.is_empty(), expected, "{name}");
        }
    }
}
