//! YAML of plain documents, as manifests are.

use serde::Serialize;
use serde_json::Value;

/// Writes an object as YAML, the way kubectl does: definitions and roles, say, for a folder of manifests.
///
/// Members are in the order of their names, texts in double quotes unless they are plain words.
///
/// ```
/// use serde_json::json;
///
/// let role = json!({"kind": "Role", "rules": [{"apiGroups": [""], "verbs": ["get"]}]});
/// let expected = "kind: Role\nrules:\n- apiGroups:\n  - \"\"\n  verbs:\n  - get\n";
/// assert_eq!(lariat_operator::yaml(&role)?, expected);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
///
/// The object cannot be serialized.
pub fn yaml<T: Serialize + ?Sized>(object: &T) -> serde_json::Result<String> {
    Ok(document(&serde_json::to_value(object)?))
}

/// Writes a document.
pub(crate) fn document(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

/// Writes a value on lines of its own.
fn block(value: &Value, indent: usize, text: &mut String) {
    let margin = " ".repeat(indent);
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                text.push_str(&format!("{margin}{}:", scalar(name)));
                // Lists are as deep as what has them, as kubectl writes them.
                let deeper = if value.is_array() { indent } else { indent + 2 };
                after(value, deeper, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut inner = String::new();
                block(item, indent + 2, &mut inner);
                text.push_str(&format!("{margin}- {}", inner.trim_start()));
            }
        }
        value => text.push_str(&format!("{margin}{}\n", leaf(value))),
    }
}

/// Writes a value behind a colon.
fn after(value: &Value, indent: usize, text: &mut String) {
    let has_lines = match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    match has_lines {
        true => {
            text.push('\n');
            block(value, indent, text);
        }
        false => text.push_str(&format!(" {}\n", leaf(value))),
    }
}

fn leaf(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        // Null, numbers and empty lists are written in YAML as in JSON.
        value => value.to_string(),
    }
}

/// Writes a text, in quotes unless it cannot be taken for anything else.
fn scalar(text: &str) -> String {
    let is_plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-./_".contains(c))
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "null"
        );
    match is_plain {
        true => text.to_owned(),
        // A text of JSON is one of YAML.
        false => Value::from(text).to_string(),
    }
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
        let expected = "kind: Role\nmetadata:\n  labels: {}\n  name: \"a:b\"\nrules:\n- apiGroups:\n  - \"\"\n  \
                        resources:\n  - pods\n  - pods/status\n  verbs:\n  - \"*\"\n  - \"on\"\n";
        assert_eq!(written, expected);
    }

    #[test]
    fn what_could_be_something_else_is_quoted() {
        for text in [
            "", "1", "1.5", "null", "True", "a b", "a: b", "-", "~", "é", "a\"b\n",
        ] {
            assert!(scalar(text).starts_with('"'), "{text:?}");
        }
        for text in ["pods", "pods/status", "demo.dev", "system_x", "e1"] {
            assert_eq!(scalar(text), text);
        }
    }
}
