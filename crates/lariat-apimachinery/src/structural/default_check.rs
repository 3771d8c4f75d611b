//! The check that the defaults of a schema are valid values of it.
//!
//! Source: `schema/defaulting/validation.go`.

use serde_json::Value;

use super::node::Node;
use super::prune::Pruning;
use super::rules;
use super::validate::Subject;
use crate::cause::StatusCause;

/// Finds defaults that do not validate, and such with unknown fields if they have to be pruned.
pub(super) fn check(node: &Node, pruned: bool, path: &str, causes: &mut Vec<StatusCause>) {
    if let Some(default) = &node.default {
        // Validated without an old value: defaults of a CRD are not ratcheted value by value.
        let field = format!("{path}.default");
        if pruned && !is_pruned(node, default) {
            let rule = "must not have unknown fields";
            causes.push(StatusCause::invalid(&field, default, rule));
        }
        check_one(node, default, &field, causes);
    }
    // Nothing is defaulted inside of additional properties.
    if let Some(items) = &node.shape.items {
        check(items, pruned, &format!("{path}.items"), causes);
    }
    for (name, property) in &node.shape.properties {
        let path = format!("{path}.properties[{name}]");
        check(property, pruned, &path, causes);
    }
}

/// Returns whether a default of a schema, or of one inside of it, has unknown fields.
pub(super) fn has_unpruned(node: &Node) -> bool {
    let default = node.default.as_ref();
    let mut inner = node.shape.items.iter().map(|items| &**items);
    default.is_some_and(|default| !is_pruned(node, default))
        || inner.any(has_unpruned)
        || node.shape.properties.values().any(has_unpruned)
}

fn is_pruned(node: &Node, default: &Value) -> bool {
    let mut pruned = default.clone();
    let mut pruning = Pruning::default();
    // A default of an embedded resource keeps its type and metadata, which no schema declares.
    pruning.prune(&mut pruned, Some(node), node.extensions.embedded);
    pruned == *default
}

fn check_one(node: &Node, default: &Value, field: &str, causes: &mut Vec<StatusCause>) {
    let (old, path) = (None, "");
    let value = default;
    let outcome = node.check(Subject { value, old, path });
    if outcome.is_valid() {
        causes.extend(rules::evaluate_default(node, default, field));
    }
    let found = outcome.faults().iter();
    causes.extend(found.map(|fault| fault.cause(Some(field))));
}
