//! Structures in messages: as Go's internal types, member by member.

use serde_json::Value;

use crate::object::Object;

/// The form of a member in messages.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// As its JSON, `null` if it is missing: a pointer, a list or a map in Go.
    Value,
    /// As its JSON, the empty text if it is missing.
    // Strings in Go are never nil, so a missing one prints as `""`. Only pointers, lists and maps print as `null`.
    Text,
    /// As its JSON, 0 if it is missing.
    Number,
    /// As its JSON, `false` if it is missing.
    Flag,
    /// A pointer to a structure.
    Struct(Members),
    /// A structure that is always there.
    // A struct by value: it prints with its zero members even if the JSON has no such object.
    Whole(Members),
    /// A list of structures.
    List(Members),
    /// A pointer to a selector of labels, which keeps the names of the API.
    // `metav1.LabelSelector` is the external type even here: it has JSON tags, and `omitempty` drops what is empty.
    Selector,
}

/// The members of a structure in Go's order: their names in the API, and in Go.
// Internal types have no JSON tags, so Go's encoder shows the names of the fields (`APIGroup`, not `apiGroup`).
pub(crate) type Members = &'static [(&'static str, &'static str, Shape)];

/// Returns how a structure is shown; `null` if there is none.
pub(crate) fn shown(value: &Value, members: Members) -> String {
    if value.is_null() {
        return "null".to_owned();
    }
    let members = members.iter().map(|(name, go_name, shape)| {
        let member = value.get(name).unwrap_or(&Value::Null);
        format!("\"{go_name}\":{}", shown_as(member, *shape))
    });
    braces(members)
}

/// Returns how a structure is shown that is always there.
pub(crate) fn whole(value: &Value, members: Members) -> String {
    match value {
        Value::Null => shown(&Value::Object(Object::new()), members),
        value => shown(value, members),
    }
}

/// Returns how a list of structures is shown; `null` if there is none.
pub(crate) fn shown_list(list: &Value, members: Members) -> String {
    let Some(items) = list.as_array() else {
        return "null".to_owned();
    };
    let items: Vec<String> = items.iter().map(|item| shown(item, members)).collect();
    format!("[{}]", items.join(","))
}

/// Returns how a value of a shape is shown.
pub(crate) fn shown_as(value: &Value, shape: Shape) -> String {
    match (shape, value) {
        (Shape::Text, Value::Null) => "\"\"".to_owned(),
        (Shape::Number, Value::Null) => "0".to_owned(),
        (Shape::Flag, Value::Null) => "false".to_owned(),
        (Shape::Struct(members), value) => shown(value, members),
        (Shape::Whole(members), value) => whole(value, members),
        (Shape::List(members), value) => shown_list(value, members),
        (Shape::Selector, value) => selector(value),
        _ => value.to_string(),
    }
}

/// Returns how a selector of labels is shown.
pub(crate) fn selector(selector: &Value) -> String {
    const REQUIREMENT: [&str; 3] = ["key", "operator", "values"];
    let requirement = |each: &Value| braces(given(each, REQUIREMENT));
    let Some(members) = selector.as_object() else {
        return "null".to_owned();
    };
    let labels = members
        .get("matchLabels")
        // `omitempty` drops empty maps and lists.
        .filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty()))
        .map(|labels| format!("\"matchLabels\":{labels}"));
    let requirements = members.get("matchExpressions").and_then(Value::as_array);
    let requirements = requirements.filter(|list| !list.is_empty()).map(|list| {
        let all: Vec<String> = list.iter().map(requirement).collect();
        format!("\"matchExpressions\":[{}]", all.join(","))
    });
    braces(labels.into_iter().chain(requirements))
}

/// Returns how an external type is shown whose empty members are left out.
pub(crate) fn given_members<const N: usize>(value: &Value, names: [&str; N]) -> String {
    braces(given(value, names))
}

/// Returns the members that are there.
fn given<const N: usize>(value: &Value, names: [&str; N]) -> impl Iterator<Item = String> {
    names
        .into_iter()
        .filter_map(|name| Some(format!("\"{name}\":{}", value.get(name)?)))
}

fn braces(members: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", members.collect::<Vec<String>>().join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Shape, selector, shown};

    #[test]
    fn structures_have_gos_names_order_and_zeros() {
        const INNER: super::Members = &[("b", "B", Shape::Text)];
        const OUTER: super::Members = &[
            ("count", "Count", Shape::Number),
            ("list", "List", Shape::List(INNER)),
            ("one", "One", Shape::Struct(INNER)),
            ("any", "Any", Shape::Value),
            ("whole", "Whole", Shape::Whole(INNER)),
        ];
        assert_eq!(
            shown(&json!({"list": [{}, {"b": "c"}], "any": [1]}), OUTER),
            r#"{"Count":0,"List":[{"B":""},{"B":"c"}],"One":null,"Any":[1],"Whole":{"B":""}}"#
        );
        assert_eq!(shown(&Value::Null, OUTER), "null");
    }

    #[test]
    fn selectors_have_labels_first() {
        let whole = json!({"matchExpressions": [{"operator": "Exists", "key": "a"}],
            "matchLabels": {"b": "c"}});
        assert_eq!(
            selector(&whole),
            r#"{"matchLabels":{"b":"c"},"matchExpressions":[{"key":"a","operator":"Exists"}]}"#
        );
        assert_eq!(selector(&json!({"matchLabels": {}})), "{}");
        assert_eq!(selector(&Value::Null), "null");
    }
}
