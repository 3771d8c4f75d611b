//! Cells that are made of one value or one list, whatever it belongs to.

use serde_json::Value;

use crate::printers::age;
use crate::printers::source::Row;

/// Joins the texts of a list.
pub(super) fn join(list: Row<'_>) -> String {
    let texts: Vec<&str> = list.list("").iter().filter_map(Value::as_str).collect();
    texts.join(",")
}

/// Joins a member of all objects of a list.
pub(super) fn members(objects: Row<'_>, member: &str) -> String {
    let texts: Vec<&str> = objects.rows("").map(|object| object.text(member)).collect();
    texts.join(",")
}

/// Joins the first few of some texts, and adds how many more there are.
pub(super) fn first_of(texts: &[String], most: usize) -> String {
    match texts.get(..most) {
        Some(first) if texts.len() > most => {
            format!("{} + {} more...", first.join(","), texts.len() - most)
        }
        _ => texts.join(","),
    }
}

/// Returns the name of a class, and whether it is the default.
///
/// The annotations that say so begin with one of `prefixes`.
pub(super) fn class_name(class: Row<'_>, prefixes: &[&str]) -> String {
    let annotations = class.get("/metadata/annotations");
    let is_default = prefixes
        .iter()
        .map(|prefix| format!("{prefix}.kubernetes.io/is-default-class"))
        .any(|annotation| annotations.get(annotation) == Some(&Value::from("true")));
    let name = class.text("/metadata/name");
    if is_default {
        format!("{name} (default)")
    } else {
        name.to_owned()
    }
}

/// Prints a span of seconds.
pub(super) fn duration(seconds: Row<'_>) -> Value {
    seconds.object.as_i64().map(age::human).into()
}

/// Prints a truth value as a text.
pub(super) fn true_or_false(flag: Row<'_>) -> Value {
    let text = |flag| if flag { "True" } else { "False" };
    flag.object.as_bool().map(text).into()
}
