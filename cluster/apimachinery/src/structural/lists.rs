//! Lists that are sets or maps: no element twice, no key twice.
//!
//! Source: `schema/listtype/validation.go`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::fault::duplicate;
use super::node::Node;
use super::prune::child;
use crate::cause::StatusCause;

/// Finds what is twice in lists of a value.
pub(super) fn check(value: &Value, node: &Node, path: &str, causes: &mut Vec<StatusCause>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if let Some(property) = node.shape.properties.get(name) {
                    check(value, property, &child(path, name), causes);
                } else if let Some(additional) = node.shape.additional_schema() {
                    check(value, additional, &format!("{path}[{name}]"), causes);
                }
            }
        }
        Value::Array(elements) => {
            match node.extensions.list_type.as_deref() {
                // Lists of type `atomic` and of none may repeat items.
                Some("set") => report(elements, path, causes),
                Some("map") => check_map(elements, &node.extensions.list_map_keys, path, causes),
                _ => {}
            }
            if let Some(items) = &node.shape.items {
                for (at, element) in elements.iter().enumerate() {
                    check(element, items, &format!("{path}[{at}]"), causes);
                }
            }
        }
        _ => {}
    }
}

fn check_map(elements: &[Value], keys: &[String], path: &str, causes: &mut Vec<StatusCause>) {
    // `validateListMap`: one element of a wrong type ends the check of its list; null is an element without keys.
    let is_other = |element: &&Value| !element.is_null() && !element.is_object();
    if let Some(at) = elements.iter().position(|element| is_other(&element)) {
        let rule = "must be an object for an array of list-type map";
        let field = format!("{path}[{at}]");
        causes.push(StatusCause::invalid(&field, &elements[at], rule));
        return;
    }
    let identity = |element: &Value| -> Value {
        // A missing key is part of the identity: two elements that both lack it are duplicates if the rest is equal.
        let key = |key: &String| Some((key.clone(), element.get(key)?.clone()));
        Value::Object(keys.iter().filter_map(key).collect::<Map<_, _>>())
    };
    let identities: Vec<Value> = elements.iter().map(identity).collect();
    report(&identities, path, causes);
}

/// Reports the second appearance of each element that appears more than once.
fn report(elements: &[Value], path: &str, causes: &mut Vec<StatusCause>) {
    let mut seen: HashMap<&Value, usize> = HashMap::with_capacity(elements.len());
    for (at, element) in elements.iter().enumerate() {
        let times = seen.entry(element).or_default();
        *times += 1;
        // `validateListSet` reports each duplicate once, however often it is repeated.
        if *times == 2 {
            causes.push(duplicate(&format!("{path}[{at}]"), element));
        }
    }
}
