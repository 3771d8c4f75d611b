//! Default values of missing fields.
//!
//! Source: `schema/defaulting/algorithm.go`.

use serde_json::Value;

use super::node::Node;

/// Puts defaults where a member is missing, or null where a schema allows no null.
pub(super) fn fill(value: &mut Value, node: &Node) {
    match value {
        Value::Object(members) => {
            // First this level, then the levels below, so that a default that is an object gets the defaults of its
            // own members.
            for (name, property) in &node.shape.properties {
                let Some(default) = &property.default else {
                    continue;
                };
                let present = members.get(name);
                // `isNonNullableNull`: where null is a value of its own, it is not replaced.
                if present.is_none_or(|value| value.is_null() && !property.nullable) {
                    members.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in members.iter_mut() {
                if let Some(member) = node.member(name) {
                    // Members with a schema of their own were replaced above; this is for entries of maps, which are
                    // never added.
                    replace_null(value, member);
                    fill(value, member);
                }
            }
        }
        Value::Array(elements) => {
            if let Some(items) = &node.shape.items {
                for element in elements {
                    replace_null(element, items);
                    fill(element, items);
                }
            }
        }
        _ => {}
    }
}

fn replace_null(value: &mut Value, node: &Node) {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        *value = default.clone();
    }
}
