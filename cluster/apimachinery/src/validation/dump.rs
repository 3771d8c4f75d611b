//! Internal types of Kubernetes as indented JSON, which is what diffs in messages compare.
//!
//! Source: `toPrettyJSON` in `k8s.io/apimachinery/pkg/util/diff`, for the types in `k8s.io/kubernetes/pkg/apis/core`.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::unified::unified;
use crate::go_text;

/// Returns the difference of two structures of an internal type.
// `diff.Diff`.
pub(crate) fn diff(of: &str, old: &Value, new: &Value) -> String {
    unified(&dump(of, old), &dump(of, new))
}

/// Returns the difference of two lists of structures.
pub(crate) fn diff_lists(of: &str, old: &[Value], new: &[Value]) -> String {
    let dump = |list: &[Value]| {
        let items = list.iter().map(|item| structure(of, item)).collect();
        Tree::List(items).text()
    };
    unified(&dump(old), &dump(new))
}

/// Returns a structure with all mutable members as they were.
///
/// `kept` is what of the old structure may not change.
pub(crate) fn with_old(mut now: Value, old: &Value, kept: &Value) -> Value {
    restore(&mut now, old, kept);
    now
}

fn restore(now: &mut Value, old: &Value, kept: &Value) {
    match (now, old, kept) {
        (Value::Object(now), Value::Object(old), Value::Object(kept)) => {
            // What was given where there was nothing may stay away.
            for (name, old) in old {
                match (now.get_mut(name), kept.get(name)) {
                    (_, None) => drop(now.insert(name.clone(), old.clone())),
                    (Some(now), Some(kept)) => restore(now, old, kept),
                    (None, Some(_)) => {}
                }
            }
        }
        (Value::Array(now), Value::Array(old), Value::Array(kept)) => {
            for ((now, old), kept) in now.iter_mut().zip(old).zip(kept) {
                restore(now, old, kept);
            }
        }
        _ => {}
    }
}

fn dump(of: &str, value: &Value) -> String {
    structure(of, value).text()
}

/// The types by their names.
static TYPES: LazyLock<HashMap<&'static str, Vec<Member>>> = LazyLock::new(|| {
    let mut types: HashMap<&'static str, Vec<Member>> = HashMap::new();
    let mut current = "";
    let lines = include_str!("internal_types.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        if !line.starts_with(' ') {
            current = words.next().unwrap_or_default();
        }
        let members = types.entry(current).or_default();
        members.extend(words.filter_map(Member::parse));
    }
    types
});

/// A member of a structure.
#[derive(Debug)]
struct Member {
    /// Its name in the API.
    name: &'static str,
    go_name: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Its zero is this text.
    Scalar(&'static str),
    /// A pointer, list or map of something without a structure.
    Value,
    Selector,
    /// Members that are shown among those of the structure.
    Metadata,
    Struct(&'static str),
    Pointer(&'static str),
    List(&'static str),
}

impl Member {
    fn parse(text: &'static str) -> Option<Self> {
        let (names, kind) = text.split_once(':')?;
        let (name, go_name) = match names.split_once('=') {
            Some((name, go_name)) => (name, go_name.to_owned()),
            None => {
                let (first, rest) = names.split_at(1);
                (names, first.to_uppercase() + rest)
            }
        };
        let kind = match (kind, kind.split_at(1)) {
            ("s", _) => Kind::Scalar("\"\""),
            ("n", _) => Kind::Scalar("0"),
            ("b", _) => Kind::Scalar("false"),
            ("q", _) => Kind::Scalar("\"0\""),
            ("v", _) => Kind::Value,
            ("l", _) => Kind::Selector,
            ("m", _) => Kind::Metadata,
            (_, ("*", of)) => Kind::Pointer(of),
            (_, ("[", of)) => Kind::List(of),
            (of, _) => Kind::Struct(of),
        };
        Some(Self {
            name,
            go_name,
            kind,
        })
    }
}

/// JSON whose members are in order.
#[derive(Debug)]
enum Tree {
    Leaf(String),
    Object(Vec<(String, Tree)>),
    List(Vec<Tree>),
}

fn structure(of: &str, value: &Value) -> Tree {
    let members = TYPES.get(of).into_iter().flatten();
    let mut shown = Vec::new();
    for member in members {
        let below = value.get(member.name).unwrap_or(&Value::Null);
        match member.kind {
            Kind::Metadata => shown.extend(given(below, &METADATA)),
            kind => shown.push((member.go_name.clone(), of_kind(kind, below))),
        }
    }
    Tree::Object(shown)
}

fn of_kind(kind: Kind, value: &Value) -> Tree {
    match (kind, value) {
        (Kind::Scalar(zero), Value::Null) => Tree::Leaf(zero.to_owned()),
        (Kind::Struct(of), value) => structure(of, value),
        (_, Value::Null) => Tree::Leaf("null".to_owned()),
        (Kind::Pointer(of), value) => structure(of, value),
        (Kind::List(of), Value::Array(items)) => {
            Tree::List(items.iter().map(|item| structure(of, item)).collect())
        }
        (Kind::Selector, value) => selector(value),
        (_, value) => plain(value),
    }
}

/// The members of metadata that a template may have.
const METADATA: [&str; 7] = [
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];

/// Returns the members that are there, as `omitempty` keeps them.
fn given(value: &Value, names: &[&str]) -> Vec<(String, Tree)> {
    let is_given = |value: &&Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    let member = |name: &&str| {
        let value = value.get(name).filter(is_given)?;
        Some(((*name).to_owned(), plain(value)))
    };
    names.iter().filter_map(member).collect()
}

/// Returns a selector of labels, which has the names of the API.
fn selector(value: &Value) -> Tree {
    let mut shown = given(value, &["matchLabels"]);
    let requirements = value.get("matchExpressions").and_then(Value::as_array);
    if let Some(list) = requirements.filter(|list| !list.is_empty()) {
        let names = ["key", "operator", "values"];
        let items = list.iter().map(|each| Tree::Object(given(each, &names)));
        shown.push(("matchExpressions".to_owned(), Tree::List(items.collect())));
    }
    Tree::Object(shown)
}

fn plain(value: &Value) -> Tree {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            let members = members.into_iter();
            Tree::Object(
                members
                    .map(|(name, value)| (name.clone(), plain(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Tree::List(items.iter().map(plain).collect()),
        other => Tree::Leaf(go_text::json(other)),
    }
}

impl Tree {
    fn text(&self) -> String {
        let mut text = String::new();
        self.write(1, &mut text);
        text
    }

    /// Writes the value, with its members so many blanks from the left.
    fn write(&self, depth: usize, text: &mut String) {
        let lines: Vec<(Option<&str>, &Self)> = match self {
            Self::Leaf(leaf) => {
                text.push_str(leaf);
                return;
            }
            Self::Object(members) => members
                .iter()
                .map(|(name, below)| (Some(name.as_str()), below))
                .collect(),
            Self::List(items) => items.iter().map(|item| (None, item)).collect(),
        };
        let (open, close) = match self {
            Self::List(_) => ('[', ']'),
            _ => ('{', '}'),
        };
        text.push(open);
        for (at, (name, below)) in lines.iter().enumerate() {
            text.push_str(if at > 0 { ",\n" } else { "\n" });
            text.extend(std::iter::repeat_n(' ', depth));
            if let Some(name) = name {
                text.push_str(&go_text::json(&(*name).into()));
                text.push_str(": ");
            }
            below.write(depth + 1, text);
        }
        if !lines.is_empty() {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', depth - 1));
        }
        text.push(close);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn structures_are_shown_line_by_line() {
        let term = json!({
            "labelSelector": {"matchLabels": {"b": "<", "a": "1"}, "matchExpressions": [{"operator": "Exists", "key": "k"}]},
            "namespaces": ["n"],
        });
        let expected = "{\n \"LabelSelector\": {\n  \"matchLabels\": {\n   \"a\": \"1\",\n   \"b\": \"\\u003c\"\n  },\n  \
            \"matchExpressions\": [\n   {\n    \"key\": \"k\",\n    \"operator\": \"Exists\"\n   }\n  ]\n },\n \
            \"Namespaces\": [\n  \"n\"\n ],\n \"TopologyKey\": \"\",\n \"NamespaceSelector\": null,\n \
            \"MatchLabelKeys\": null,\n \"MismatchLabelKeys\": null\n}";
        assert_eq!(dump("PodAffinityTerm", &term), expected);
        assert_eq!(Tree::List(Vec::new()).text(), "[]");
    }

    #[test]
    fn every_type_that_is_named_is_there() {
        for member in TYPES.values().flatten() {
            if let Kind::Struct(of) | Kind::Pointer(of) | Kind::List(of) = member.kind {
                assert!(TYPES.contains_key(of), "{member:?}");
            }
        }
    }
}
