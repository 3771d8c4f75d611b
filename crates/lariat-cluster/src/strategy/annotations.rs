//! The rules of annotations.
//!
//! Source: `ValidateAnnotations` in `k8s.io/apimachinery/pkg/api/validation`.

use lariat_core::Labels;
use serde_json::Value;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::object::Object;

const PATH: &str = "metadata.annotations";

/// How long all keys and values may be together, in bytes.
const MOST_BYTES: usize = 256 << 10;

/// Finds what is wrong with the annotations of an object.
pub(crate) fn validate(object: &Object) -> Vec<StatusCause> {
    let annotations = object
        .get("metadata")
        .and_then(|metadata| metadata.get("annotations"))
        .and_then(Value::as_object);
    let (mut causes, mut size) = (Vec::new(), 0);
    for (key, value) in annotations.into_iter().flatten() {
        size += key.len() + value.as_str().unwrap_or_default().len();
        // They are the keys of labels, except that case does not matter.
        if let Err(rule) = Labels::check_key(&key.to_lowercase()) {
            causes.push(StatusCause::invalid(PATH, &key.as_str().into(), rule));
        }
    }
    if size > MOST_BYTES {
        let message = format!("Too long: may not be more than {MOST_BYTES} bytes");
        causes.push(StatusCause::new("FieldValueTooLong", PATH, message));
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(annotations: &Value, expected: &[&str]) {
        let object = json!({"metadata": {"annotations": annotations}});
        let causes = validate(object.as_object().unwrap());
        let reasons: Vec<&str> = causes.iter().map(StatusCause::reason).collect();
        assert_eq!(reasons, expected, "{causes:?}");
    }

    #[test]
    fn keys_are_qualified_names_and_the_whole_is_bounded() {
        check(&Value::Null, &[]);
        check(&json!({"Demo.dev/Some_Key": "any value: \u{0}"}), &[]);
        check(&json!({"not a key": ""}), &["FieldValueInvalid"]);
        check(&json!({"a/b/c": ""}), &["FieldValueInvalid"]);
        check(&json!({"a": "x".repeat(MOST_BYTES - 1)}), &[]);
        check(
            &json!({"a": "x".repeat(MOST_BYTES)}),
            &["FieldValueTooLong"],
        );
    }
}
