//! Labels and label selectors, as cells have them.

use serde_json::Value;

use crate::printers::source::Row;

/// Returns labels, with `=` between name and value.
pub(super) fn labels(labels: Row<'_>) -> String {
    let labels: Vec<String> = pairs(labels).map(|(_, label)| label).collect();
    labels.join(",")
}

/// Returns a label selector, empty if it selects all or nothing.
pub(super) fn selector(selector: Row<'_>) -> String {
    let mut terms: Vec<(&str, String)> = pairs(selector.at("/matchLabels")).collect();
    terms.extend(selector.rows("/matchExpressions").map(expression));
    terms.sort();
    let terms: Vec<String> = terms.into_iter().map(|(_, term)| term).collect();
    terms.join(",")
}

/// Returns each label, with its name to sort by.
fn pairs<'a>(labels: Row<'a>) -> impl Iterator<Item = (&'a str, String)> {
    let labels = labels.object.as_object().into_iter().flatten();
    labels.map(|(name, value)| {
        let value = value.as_str().unwrap_or_default();
        (&**name, format!("{name}={value}"))
    })
}

/// Returns a term of `matchExpressions`, with its label to sort by.
fn expression(term: Row<'_>) -> (&str, String) {
    let key = term.text("/key");
    let listed = term.list("/values").iter();
    let mut sorted: Vec<&str> = listed.filter_map(Value::as_str).collect();
    sorted.sort_unstable();
    let values = sorted.join(",");
    let text = match term.text("/operator") {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    };
    (key, text)
}
