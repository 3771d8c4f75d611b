//! What differs between two states of an object, for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lariat_core::Gvk;
use serde_json::Value;

/// How many characters of a value are shown.
const SHOWN: usize = 80;

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldChange {
    /// The path, such as `spec.template.spec.containers[web].image`.
    pub path: String,
    /// The JSON of the value there is, shortened; `None` if there is none.
    pub old: Option<String>,
    /// The JSON of the value there will be, shortened; `None` if there will be none.
    pub new: Option<String>,
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "(none)".to_owned());
        let (old, new) = (shown(&self.old), shown(&self.new));
        write!(f, "{}: {old} → {new}", self.path)
    }
}

/// Returns what differs. The values of a Secret are never shown.
pub(super) fn diff(gvk: &Gvk, old: &Value, new: &Value) -> Vec<FieldChange> {
    let mut differences = Differences {
        is_secret: gvk.group().is_empty() && gvk.kind() == "Secret",
        found: Vec::new(),
    };
    differences.compare("", Some(old), Some(new));
    differences.found
}

struct Differences {
    is_secret: bool,
    found: Vec<FieldChange>,
}

impl Differences {
    fn compare(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        if old == new || is_noise(path) {
            return;
        }
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
                for name in names {
                    let path = join(path, name);
                    self.compare(&path, old.get(name), new.get(name));
                }
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) => {
                let named = by_name(old).zip(by_name(new));
                let (old, new) = named.unwrap_or_else(|| (by_index(old), by_index(new)));
                let places: BTreeSet<Place<'_>> = old.keys().chain(new.keys()).copied().collect();
                for place in places {
                    let path = format!("{path}[{place}]");
                    self.compare(&path, old.get(&place).copied(), new.get(&place).copied());
                }
            }
            _ => self.tell(path, old, new),
        }
    }

    fn tell(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        let hidden = self.is_secret && is_secret(path);
        let shown = |value: &Value| match hidden {
            true => "(hidden)".to_owned(),
            false => shorten(&value.to_string()),
        };
        self.found.push(FieldChange {
            path: path.to_owned(),
            old: old.map(shown),
            new: new.map(shown),
        });
    }
}

/// Returns whether a field changes with every write, or is none of ours.
fn is_noise(path: &str) -> bool {
    matches!(
        path,
        "status"
            | "metadata.managedFields"
            | "metadata.resourceVersion"
            | "metadata.generation"
            | "metadata.uid"
            | "metadata.creationTimestamp"
    )
}

/// Returns whether a field of a Secret tells values, as the annotation of `kubectl apply` does too.
fn is_secret(path: &str) -> bool {
    let is_metadata =
        path.starts_with("metadata.labels") || path.starts_with("metadata.ownerReferences");
    !is_metadata && path != "type" && path != "immutable"
}

fn join(path: &str, name: &str) -> String {
    let name = match name.contains('.') || name.contains('/') {
        true => format!("[{name}]"),
        false if path.is_empty() => name.to_owned(),
        false => format!(".{name}"),
    };
    format!("{path}{name}")
}

/// Where an element of a list is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place<'a> {
    Named(&'a str),
    At(usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::At(at) => write!(f, "{at}"),
        }
    }
}

/// Returns elements by name, if each has one of its own, as containers and ports do.
fn by_name(list: &[Value]) -> Option<BTreeMap<Place<'_>, &Value>> {
    let named = list
        .iter()
        .map(|each| Some((Place::Named(each.get("name")?.as_str()?), each)));
    let named: BTreeMap<Place<'_>, &Value> = named.collect::<Option<_>>()?;
    (named.len() == list.len()).then_some(named)
}

/// Returns elements by their place.
fn by_index(list: &[Value]) -> BTreeMap<Place<'_>, &Value> {
    let places = list.iter().enumerate();
    places.map(|(at, each)| (Place::At(at), each)).collect()
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(kind: &str, old: &Value, new: &Value) -> Vec<String> {
        let changes = diff(&Gvk::new("", "v1", kind), old, new);
        changes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn fields_are_told_by_their_paths() {
        let old = json!({"spec": {"a": 1, "c": [{"name": "web", "image": "x"}], "l": [1, 2]}, "status": 1,
            "metadata": {"annotations": {"a.b/c": "1"}, "resourceVersion": "1"}});
        let new = json!({"spec": {"b": 2, "c": [{"name": "web", "image": "y"}], "l": [1, 3, 4]}, "status": 2,
            "metadata": {"annotations": {"a.b/c": "2"}, "resourceVersion": "2"}});
        let expected = [
            "metadata.annotations[a.b/c]: \"1\" → \"2\"",
            "spec.a: 1 → (none)",
            "spec.b: (none) → 2",
            "spec.c[web].image: \"x\" → \"y\"",
            "spec.l[1]: 2 → 3",
            "spec.l[2]: (none) → 4",
        ];
        assert_eq!(lines("Pod", &old, &new), expected);
    }

    #[test]
    fn values_of_secrets_are_hidden_wherever_they_are() {
        let last = "kubectl.kubernetes.io/last-applied-configuration";
        let old = json!({"data": {"a": "b2xk"}, "metadata": {"annotations": {last: "b2xk"}}});
        let new = json!({"data": {"a": "bmV3", "b": "bmV3"}, "stringData": {"c": "bmV3"}});
        for line in lines("Secret", &old, &new) {
            assert!(!line.contains("b2xk") && !line.contains("bmV3"), "{line}");
        }
        let old = json!({"metadata": {"labels": {"a": "1"}}});
        let new = json!({"metadata": {"labels": {"a": "2"}}});
        assert_eq!(
            lines("Secret", &old, &new),
            ["metadata.labels.a: \"1\" → \"2\""]
        );
    }

    #[test]
    fn long_values_are_shortened() {
        let line = &lines("Pod", &json!({}), &json!({"a": "ä".repeat(200)}))[0];
        assert!(line.chars().count() < 110, "{line}");
    }
}
