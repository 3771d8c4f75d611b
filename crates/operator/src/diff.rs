//! The difference between two states of an object, as text for plans and logs.

use std::fmt;

use lariat_core::{comparable, compare_fields, field_path};
use serde_json::{Map, Value};

use crate::names::{APPLIED, LEASE};

/// A field that would change.
///
/// Its `Display` is like `spec.replicas: 2 → 3`; a missing value is `(none)`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldChange {
    path: String,
    old: Option<String>,
    new: Option<String>,
}

/// The fields in which two states of an object differ.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Diff {
    pub(crate) changes: Vec<FieldChange>,
    /// The number of fields beyond those in `changes`.
    pub(crate) left_out: usize,
    is_secret: bool,
}

/// The number of changes that are listed for one object.
const MOST: usize = 256;

/// The number of characters that are shown of a value.
const LONGEST: usize = 256;

/// Fields that the API server maintains; their changes are not shown.
const HIDDEN: [&str; 6] = [
    "managedFields",
    "resourceVersion",
    "generation",
    "uid",
    "creationTimestamp",
    "selfLink",
];

impl FieldChange {
    /// Returns the path, such as `spec.containers[web].image`.
    ///
    /// Names with dots are quoted: `metadata.labels["app.kubernetes.io/name"]`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the present value as JSON, or `None` if the field is missing.
    ///
    /// Values of Secrets are `(hidden)`. Values of more than 256 characters are truncated.
    #[must_use]
    pub fn before(&self) -> Option<&str> {
        self.old.as_deref()
    }

    /// Returns the planned value as JSON, or `None` if the field is removed.
    ///
    /// Values of Secrets are `(hidden)`. Values of more than 256 characters are truncated.
    #[must_use]
    pub fn after(&self) -> Option<&str> {
        self.new.as_deref()
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (old, new) = (
            self.before().unwrap_or("(none)"),
            self.after().unwrap_or("(none)"),
        );
        write!(f, "{}: {old} → {new}", self.path)
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in &self.changes {
            write!(f, "\n    {change}")?;
        }
        match (self.left_out, self.changes.is_empty()) {
            (0, true) => f.write_str("\n    nothing would change"),
            (0, false) => Ok(()),
            (more, _) => write!(f, "\n    and {more} more fields"),
        }
    }
}

impl Diff {
    /// Compares two states of an object; the values of a Secret are hidden.
    pub(crate) fn of(old: &Value, new: &Value, is_secret: bool) -> Self {
        let mut diff = Self {
            is_secret,
            ..Self::default()
        };
        let [old, new] = [old, new].map(|object| without_lease(comparable(object, &HIDDEN)));
        compare_fields(&old, &new, |path, old, new| diff.add(path, old, new));
        if diff.changes.len() > 1 {
            // The annotation with the hash of what was applied changes with every other change. It is shown only if
            // nothing else changes.
            let path = field_path("metadata.annotations", APPLIED);
            diff.changes.retain(|change| change.path != path);
        }
        diff
    }

    fn add(&mut self, at: &str, old: Option<&Value>, new: Option<&Value>) {
        if self.changes.len() == MOST {
            self.left_out += 1;
            return;
        }
        let hides = self.is_secret && shows_values(at);
        let text = |value: &Value| {
            if hides {
                "(hidden)".to_owned()
            } else {
                cut(value.to_string())
            }
        };
        self.changes.push(FieldChange {
            path: at.to_owned(),
            old: old.map(text),
            new: new.map(text),
        });
    }
}

/// Removes the annotation with the lease, which alone is no reason for a write.
fn without_lease(mut object: Map<String, Value>) -> Map<String, Value> {
    let annotations = object
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.remove(LEASE);
    }
    object
}

/// Returns whether a field of a Secret may contain secret values.
///
/// Besides `data`, annotations may: `kubectl apply` writes a copy of the whole object there.
fn shows_values(at: &str) -> bool {
    const OPEN: [&str; 5] = [
        "metadata.name",
        "metadata.labels",
        "metadata.ownerReferences",
        "type",
        "immutable",
    ];
    // By prefix, because a path may go on behind the name; `metadata.name` covers the namespace too.
    !OPEN.iter().any(|open| at.starts_with(open))
}

/// Truncates a long value.
fn cut(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(old: &Value, new: &Value, expected: &[&str]) {
        let diff = Diff::of(old, new, false);
        let changes: Vec<_> = diff.changes.iter().map(ToString::to_string).collect();
        assert_eq!(changes, expected, "{old} → {new}");
    }

    #[test]
    fn fields_that_change_are_told_with_their_path() {
        let old = json!({"spec": {"replicas": 2, "list": [{"a": 1}, "x"], "gone": "y"}});
        let new = json!({"spec": {"replicas": 3, "list": [{"a": 1, "b.c/d": 2}]}, "more": {}});
        check(
            &old,
            &new,
            &[
                "more: (none) → {}",
                "spec.gone: \"y\" → (none)",
                "spec.list[0][\"b.c/d\"]: (none) → 2",
                "spec.list[1]: \"x\" → (none)",
                "spec.replicas: 2 → 3",
            ],
        );
    }

    #[test]
    fn what_the_server_keeps_for_itself_is_left_out() {
        let metadata = json!({"uid": "u", "resourceVersion": "1", "name": "a"});
        let new = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
        check(&json!({}), &new, &["metadata.name: (none) → \"a\""]);
        check(&new, &new, &[]);
        check(&json!(null), &json!([1]), &[]);
    }

    #[test]
    fn elements_with_names_are_told_by_them() {
        let list = |image: &str| json!({"c": [{"name": "web", "image": image}, {"name": "log"}]});
        let mut fewer = list("y");
        fewer["c"].as_array_mut().unwrap().pop();
        check(
            &list("x"),
            &fewer,
            &[
                "c[log].name: \"log\" → (none)",
                "c[web].image: \"x\" → \"y\"",
            ],
        );
    }

    #[test]
    fn another_order_of_elements_with_names_is_told() {
        let list = |names: &[&str]| {
            let elements = names.iter().map(|name| json!({"name": name}));
            json!({"c": elements.collect::<Value>()})
        };
        check(
            &list(&["a", "b", "c"]),
            &list(&["c", "a", "b"]),
            &[r#"c[].name: ["a","b","c"] → ["c","a","b"]"#],
        );
        // Added and removed elements do not count as a new order.
        check(
            &list(&["a", "b", "c"]),
            &list(&["x", "a", "c"]),
            &["c[b].name: \"b\" → (none)", "c[x].name: (none) → \"x\""],
        );
        check(
            &list(&["a", "b"]),
            &list(&["b", "x", "a"]),
            &[
                r#"c[].name: ["a","b"] → ["b","a"]"#,
                "c[x].name: (none) → \"x\"",
            ],
        );
    }

    #[test]
    fn values_of_secrets_are_hidden_wherever_they_are() {
        let last = "kubectl.kubernetes.io/last-applied-configuration";
        let old = json!({"data": {"a": "b2xk"}, "metadata": {"annotations": {last: "b2xk"}}});
        let new = json!({"data": {"a": "bmV3", "b": "bmV3"}, "stringData": {"c": "bmV3"}});
        let diff = Diff::of(&old, &new, true);
        let text = format!("{diff}{diff:?}");
        assert!(text.contains("data.b: (none) → (hidden)"), "{text}");
        assert!(!text.contains("b2xk") && !text.contains("bmV3"), "{text}");
        let labels = |value: &str| json!({"metadata": {"labels": {"a": value}}});
        let diff = Diff::of(&labels("1"), &labels("2"), true);
        assert_eq!(diff.to_string(), "\n    metadata.labels.a: \"1\" → \"2\"");
    }

    #[test]
    fn long_values_are_cut() {
        let long = json!({"a": "ä".repeat(LONGEST)});
        let diff = Diff::of(&json!({}), &long, false);
        let new = diff.changes[0].after().unwrap().chars().count();
        assert_eq!(new, LONGEST + 1);
    }

    #[test]
    fn of_many_fields_the_first_are_told() {
        let fields = (0..MOST + 3).map(|number| (number.to_string(), json!(1)));
        let diff = Diff::of(&json!({}), &Value::Object(fields.collect()), false);
        assert_eq!(diff.changes.len(), MOST);
        assert!(diff.to_string().ends_with("and 3 more fields"));
        let same = Diff::of(&json!({}), &json!({}), false);
        assert_eq!(same.to_string(), "\n    nothing would change");
    }
}
