//! Finds the atomic parts of an object.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go`.

use std::fmt::Write;

use serde_json::Value;

use crate::schema::{ListKind, Resolved, TypeRef};

/// Returns the paths of atomic lists, maps and structures in a value.
///
/// An example is `.spec.tolerations`.
#[must_use]
pub fn atomics(typed: TypeRef<'_>, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    find(typed, value, &mut String::new(), &mut found);
    found
}

// `findAtomics`: an apply configuration of a mutating admission policy may set nothing that is listed here.
fn find(typed: TypeRef<'_>, value: &Value, path: &mut String, found: &mut Vec<String>) {
    let length = path.len();
    match (typed.resolve(value), value) {
        (Resolved::List(list), Value::Array(items)) => {
            if list.kind == ListKind::Atomic {
                // The walk goes on below, since an item of an atomic list may hold atomic values too, and each of them
                // is listed.
                found.push(path.clone());
            }
            for (at, item) in items.iter().enumerate() {
                // Writing to a text does not fail.
                let _ = write!(path, "[{at}]");
                find(typed.item(), item, path, found);
                path.truncate(length);
            }
        }
        (Resolved::AnyList, _) => found.push(path.clone()),
        (Resolved::Map | Resolved::Struct, Value::Object(members)) => {
            if typed.is_atomic() {
                found.push(path.clone());
            }
            for (name, value) in members {
                // Only fields are followed, not the keys of maps.
                if typed.field(name).is_some()
                    && let Some(below) = typed.member(name)
                {
                    path.push('.');
                    path.push_str(name);
                    find(below, value, path, found);
                    path.truncate(length);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::builtin;

    #[test]
    fn lists_without_keys_and_atomic_structures_are_found() {
        let schema = builtin("apps/v1", "Deployment").unwrap();
        let deployment = json!({"metadata": {"labels": {"a": "b"}}, "spec": {
            "selector": {"matchLabels": {"a": "b"}}, "replicas": 1,
            "template": {"spec": {"tolerations": [{"key": "a"}],
                "containers": [{"name": "a", "args": ["b"], "resources": {"limits": {"cpu": "1"}}}]}}}});
        let expected = [
            ".spec.selector",
            ".spec.template.spec.containers[0].args",
            ".spec.template.spec.tolerations",
        ];
        assert_eq!(atomics(schema.root(), &deployment), expected);
    }
}
