//! The check that the defaults of a schema are valid values of it.
//!
//! Source: `schema/defaulting/validation.go`.

use serde_json::Value;

use super::node::Node;
use super::prune::Pruning;
use super::validate::Subject;
use crate::cause::StatusCause;

/// Finds defaults with unknown fields, and such as do not validate.
pub(super) fn check(node: &Node, path: &str, causes: &mut Vec<StatusCause>) {
    if let Some(default) = &node.default {
        // Validated without an old value: defaults of a CRD are not ratcheted value by value.
        check_one(node, default, path, causes);
    }
    // Nothing is defaulted inside of additional properties.
    if let Some(items) = &node.shape.items {
        check(items, &format!("{path}.items"), causes);
    }
    for (name, property) in &node.shape.properties {
        check(property, &format!("{path}.properties[{name}]"), causes);
    }
}

fn check_one(node: &Node, default: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let field = format!("{path}.default");
    let mut pruned = default.clone();
    let mut pruning = Pruning::default();
    // A default of an embedded resource keeps its type and metadata, which no schema declares.
    pruning.prune(&mut pruned, Some(node), node.extensions.embedded);
    if pruned != *default {
        causes.push(StatusCause::invalid(
            &field,
            default,
            "must not have unknown fields",
        ));
    }
    let (old, path) = (None, "");
    let value = default;
    let outcome = node.check(Subject { value, old, path });
    let found = outcome.faults().iter();
    causes.extend(found.map(|fault| fault.cause(Some(&field))));
}
