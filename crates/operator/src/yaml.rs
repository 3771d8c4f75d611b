//! YAML of manifests.

use serde::Serialize;
use serde_json::Value;

/// Returns an object as YAML, in the form that kubectl prints.
///
/// Use it to generate manifests, for example of CRDs and roles. Members are sorted by name. Texts of several lines are
/// blocks; other texts are in double quotes unless they are plain words. kubectl reads the same object.
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
    lariat_core::yaml::write(value)
}
