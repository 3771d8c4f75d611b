//! Compares two states of an object field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

/// Fields of the metadata that change with every write.
const OF_EVERY_WRITE: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// Returns the paths of the fields that differ between two states of an object.
///
/// Returns at most `most` paths, in alphabetical order, such as `spec.containers[web].image`. List elements are
/// identified by their `name` if all elements have different names, and otherwise by their index. Names with dots are
/// quoted: `metadata.labels["app.kubernetes.io/name"]`. Apart from names of elements, no path contains a value.
/// `managedFields`, `resourceVersion` and `generation` are ignored, because they change with every write.
///
/// ```
/// use lariat::core::changed_fields;
/// use serde_json::json;
///
/// let old = json!({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 2}});
/// let new = json!({"metadata": {"resourceVersion": "2"}, "spec": {"replicas": 3}, "status": {}});
/// assert_eq!(changed_fields(&old, &new, 20), ["spec.replicas", "status"]);
/// ```
#[must_use]
pub fn changed_fields(old: &Value, new: &Value, most: usize) -> Vec<String> {
    let [old, new] = [old, new].map(|object| comparable(object, &OF_EVERY_WRITE));
    let mut paths = Vec::new();
    compare_fields(&old, &new, |path, _, _| {
        // The comparison cannot be stopped from here; further paths are only not copied.
        if paths.len() < most {
            paths.push(path.to_owned());
        }
    });
    paths
}

/// Returns an object without the fields that a comparison should ignore.
///
/// These are `apiVersion` and `kind`, which do not change, and the `hidden` fields of the metadata.
///
/// ```
/// use lariat_core::comparable;
/// use serde_json::json;
///
/// let object = json!({"kind": "Pod", "metadata": {"name": "web", "generation": 2}});
/// let fields = comparable(&object, &["generation"]);
/// assert_eq!(fields["metadata"], json!({"name": "web"}));
/// assert!(!fields.contains_key("kind"));
/// ```
#[must_use]
pub fn comparable(object: &Value, hidden: &[&str]) -> Map<String, Value> {
    let mut object = object.as_object().cloned().unwrap_or_default();
    object.remove("apiVersion");
    object.remove("kind");
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for name in hidden {
            metadata.remove(*name);
        }
    }
    object
}

/// Calls a function with the path, old value and new value of each differing field.
///
/// The calls are ordered by path; [`changed_fields`] describes paths. Objects and lists are compared down to single
/// fields, even if only one of the states has them. A different order of named elements is reported as a difference of
/// `list[].name`.
pub fn compare_fields(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    mut found: impl FnMut(&str, Option<&Value>, Option<&Value>),
) {
    Comparison(&mut found).fields("", old, new);
}

/// Returns the path of a field of the object at a path.
///
/// An empty `at` is the object itself.
///
/// ```
/// use lariat_core::field_path;
///
/// assert_eq!(field_path("spec", "replicas"), "spec.replicas");
/// assert_eq!(field_path("metadata.labels", "a.b/c"), r#"metadata.labels["a.b/c"]"#);
/// ```
#[must_use]
pub fn field_path(at: &str, name: &str) -> String {
    let is_plain = |each: char| each.is_ascii_alphanumeric() || each == '_' || each == '-';
    // A dot in a name would look like two fields.
    if !name.chars().all(is_plain) {
        format!("{at}[{name:?}]")
    } else if at.is_empty() {
        name.to_owned()
    } else {
        format!("{at}.{name}")
    }
}

/// Receives the path, the old and the new value of a field.
type Found<'a> = dyn FnMut(&str, Option<&Value>, Option<&Value>) + 'a;

/// A comparison in progress.
struct Comparison<'a>(&'a mut Found<'a>);

impl Comparison<'_> {
    /// Compares the fields of two objects.
    fn fields(&mut self, at: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            self.value(&field_path(at, name), old.get(name), new.get(name));
        }
    }

    /// Compares two values, either of which may be missing.
    fn value(&mut self, at: &str, old: Option<&Value>, new: Option<&Value>) {
        let nothing = Map::new();
        match (old, new) {
            // Most subtrees are equal, and comparing values is faster than walking them.
            (old, new) if old == new => {}
            (Some(Value::Object(old)), Some(Value::Object(new))) => self.fields(at, old, new),
            // Field by field, so that a created object reads like a changed one.
            (None, Some(Value::Object(new))) if !new.is_empty() => self.fields(at, &nothing, new),
            (Some(Value::Object(old)), None) if !old.is_empty() => self.fields(at, old, &nothing),
            (Some(Value::Array(old)), Some(Value::Array(new))) => self.elements(at, old, new),
            (None, Some(Value::Array(new))) if !new.is_empty() => self.elements(at, &[], new),
            (Some(Value::Array(old)), None) if !old.is_empty() => self.elements(at, old, &[]),
            (old, new) => (self.0)(at, old, new),
        }
    }

    /// Compares the elements of two lists.
    fn elements(&mut self, at: &str, old: &[Value], new: &[Value]) {
        // By name if possible: with indices, inserting a container at the front would change all that follow.
        let named = by_name(old).zip(by_name(new));
        if let Some((before, after)) = &named {
            self.order(at, common(old, after), common(new, before));
        }
        let (old, new) = named.unwrap_or_else(|| (by_index(old), by_index(new)));
        let keys: BTreeSet<ElementKey<'_>> = old.keys().chain(new.keys()).copied().collect();
        for key in keys {
            let (old, new) = (old.get(&key).copied(), new.get(&key).copied());
            self.value(&format!("{at}[{key}]"), old, new);
        }
    }

    /// Compares the order of the named elements that are in both lists.
    fn order(&mut self, at: &str, old: Vec<&Value>, new: Vec<&Value>) {
        if old != new {
            let [old, new] = [old, new].map(|names| names.into_iter().cloned().collect());
            (self.0)(&format!("{at}[].name"), Some(&old), Some(&new));
        }
    }
}

/// Identifies an element of a list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ElementKey<'a> {
    /// By its `name`.
    Named(&'a str),
    /// By its index.
    At(usize),
}

impl fmt::Display for ElementKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::At(at) => write!(f, "{at}"),
        }
    }
}

/// Returns the elements by name, if all have different names.
fn by_name(list: &[Value]) -> Option<BTreeMap<ElementKey<'_>, &Value>> {
    let named: BTreeMap<ElementKey<'_>, &Value> = list
        .iter()
        .map(|each| Some((ElementKey::Named(each.get("name")?.as_str()?), each)))
        .collect::<Option<_>>()?;
    // Two elements with one name cannot be identified by it.
    (named.len() == list.len()).then_some(named)
}

/// Returns the names of a list's elements that are in another list too, in order.
fn common<'a>(list: &'a [Value], other: &BTreeMap<ElementKey<'_>, &Value>) -> Vec<&'a Value> {
    let names = list.iter().filter_map(|each| each.get("name"));
    let is_common = |name: &&Value| {
        name.as_str()
            .is_some_and(|name| other.contains_key(&ElementKey::Named(name)))
    };
    names.filter(is_common).collect()
}

/// Returns the elements by index.
fn by_index(list: &[Value]) -> BTreeMap<ElementKey<'_>, &Value> {
    let places = list.iter().enumerate();
    places
        .map(|(at, each)| (ElementKey::At(at), each))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_name_what_differs_and_nothing_of_every_write() {
        let old = json!({"kind": "Pod", "metadata": {"resourceVersion": "1", "generation": 1, "labels": {}},
            "spec": {"containers": [{"name": "web", "image": "a"}], "tolerations": [1]}});
        let new = json!({"metadata": {"resourceVersion": "2", "generation": 2, "managedFields": [],
            "labels": {"app.dev/x": "y"}}, "spec": {"containers": [{"name": "web", "image": "b"}], "tolerations": [1, 2]}});
        assert_eq!(
            changed_fields(&old, &new, 20),
            [
                "metadata.labels[\"app.dev/x\"]",
                "spec.containers[web].image",
                "spec.tolerations[1]"
            ]
        );
        assert!(changed_fields(&new, &new, 20).is_empty());
        assert_eq!(changed_fields(&old, &new, 1).len(), 1);
        assert!(changed_fields(&json!(null), &json!([1]), 20).is_empty());
    }
}
