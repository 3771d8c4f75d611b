//! YAML of manifests.

use serde::Serialize;
use serde_json::Value;

/// Returns an object as YAML, in the form that kubectl prints.
///
/// Use it to generate manifests, for example of CRDs and roles. Members are sorted by name. Texts are in double quotes
/// unless they are plain words.
///
/// ```
/// use serde_json::json;
///
/// let role = json!({"kind": "Role", "rules": [{"apiGroups": [""], "verbs": ["get"]}]});
/// let expected = "kind: Role\nrules:\n- apiGroups:\n  - \"\"\n  verbs:\n  - get\n";
/// assert_eq!(lariat::operator::yaml(&role)?, expected);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
///
/// The object cannot be serialized.
pub fn yaml<T: Serialize + ?Sized>(object: &T) -> serde_json::Result<String> {
    Ok(document(&serde_json::to_value(object)?))
}

/// Returns a document as YAML.
pub(crate) fn document(value: &Value) -> String {
    // Long texts are not folded, so that the output is stable and can be searched.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(value, options).expect("all of JSON is YAML")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_written_as_kubectl_does() {
        let written = document(&json!({
            "kind": "Role", "metadata": {"name": "a:b", "labels": {}},
            "rules": [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["*", "on"]}],
        }));
        let expected = "kind: Role\nmetadata:\n  labels: {}\n  name: a:b\nrules:\n- apiGroups:\n  - \"\"\n  \
                        resources:\n  - pods\n  - pods/status\n  verbs:\n  - \"*\"\n  - \"on\"\n";
        assert_eq!(written, expected);
    }

    #[test]
    fn what_could_be_something_else_is_quoted() {
        for text in [
            "",
            "1",
            "1.5",
            "0x1F",
            "1e3",
            "12:30:00",
            "null",
            "True",
            "yes",
            "a: b",
            "a #b",
            "~",
            "*",
            "2026-01-01",
        ] {
            assert_eq!(document(&text.into()), format!("\"{text}\"\n"));
            assert_eq!(document(&json!({text: 1})), format!("\"{text}\": 1\n"));
        }
        for text in [
            "pods",
            "pods/status",
            "demo.dev",
            "e1",
            "a b",
            "é",
            "https://localhost:1",
        ] {
            assert_eq!(document(&text.into()), format!("{text}\n"));
        }
    }
}
