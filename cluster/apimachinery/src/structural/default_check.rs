//! The check that the defaults of a schema are valid values of it.
//!
//! Source: `schema/defaulting/validation.go`.

use serde_json::{Map, Value, json};

use super::embedded::{self, Level};
use super::node::Node;
use super::prune::{META, Pruning};
use super::rules;
use super::validate::Subject;
use crate::cause::StatusCause;

/// A step from a resource to a value inside of it.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Item,
}

/// The resource around a schema, and the way to the schema.
#[derive(Debug, Clone, Copy)]
struct Around<'a> {
    resource: &'a Node,
    way: Way<'a>,
    /// The schema is of the type or the metadata of the resource.
    in_meta: bool,
}

/// The steps from a resource, the last one first.
#[derive(Debug, Clone, Copy)]
enum Way<'a> {
    Here,
    Behind(&'a Way<'a>, Step<'a>),
}

/// Finds defaults that do not validate, and such with unknown fields if they have to be pruned.
///
/// The node is that of a whole resource, compiled by [`Node::compile_structural`].
pub(super) fn check(node: &Node, pruned: bool, path: &str, causes: &mut Vec<StatusCause>) {
    let around = Around {
        resource: node,
        way: Way::Here,
        in_meta: false,
    };
    visit(node, around, Level::Resource, pruned, path, causes);
}

fn visit<'a>(
    node: &'a Node,
    around: Around<'a>,
    level: Level,
    pruned: bool,
    path: &str,
    causes: &mut Vec<StatusCause>,
) {
    let is_resource = level == Level::Resource || node.extensions.embedded;
    let around = if is_resource {
        Around {
            resource: node,
            way: Way::Here,
            in_meta: false,
        }
    } else {
        around
    };
    if let Some(default) = &node.default {
        // Validated without an old value: defaults of a CRD are not ratcheted value by value.
        let field = format!("{path}.default");
        if around.in_meta {
            check_in_meta(node, default, around, &field, causes);
        } else {
            check_one(node, default, is_resource, pruned, &field, causes);
        }
    }
    // Nothing is defaulted inside of additional properties.
    if let Some(items) = &node.shape.items {
        let way = Way::Behind(&around.way, Step::Item);
        let path = format!("{path}.items");
        let around = Around { way, ..around };
        visit(items, around, Level::Part, pruned, &path, causes);
    }
    for (name, property) in &node.shape.properties {
        let around = Around {
            way: Way::Behind(&around.way, Step::Member(name)),
            in_meta: around.in_meta || (is_resource && META.contains(&name.as_str())),
            ..around
        };
        let path = format!("{path}.properties[{name}]");
        visit(property, around, Level::Part, pruned, &path, causes);
    }
}

/// Returns whether a default of a schema, or of one inside of it, has unknown fields.
pub(super) fn has_unpruned(node: &Node) -> bool {
    let default = node.default.as_ref();
    let mut inner = node.shape.items.iter().map(|items| &**items);
    let embedded = node.extensions.embedded;
    default.is_some_and(|default| !is_pruned(node, embedded, default))
        || inner.any(has_unpruned)
        || node.shape.properties.values().any(has_unpruned)
}

fn is_pruned(node: &Node, is_resource: bool, default: &Value) -> bool {
    let mut pruned = default.clone();
    let mut pruning = Pruning::default();
    // A default of an embedded resource keeps its type and metadata, which no schema declares.
    pruning.prune_fields(&mut pruned, node, is_resource);
    pruned == *default
}

/// Checks a default of a type or of metadata: the resource around it must be one that can be read.
fn check_in_meta(
    node: &Node,
    default: &Value,
    around: Around<'_>,
    field: &str,
    causes: &mut Vec<StatusCause>,
) {
    let mut object = surrounded(around.way, default.clone());
    let (resource, level) = (around.resource, Level::Resource);
    let mut wrong = |error: String| {
        let rule = format!("must result in valid metadata: {error}");
        causes.push(StatusCause::invalid(field, default, &rule));
    };
    if let Err(cause) = embedded::coerce(&mut object, resource, "", level, &mut Vec::new()) {
        return wrong(cause.text());
    }
    let mut found = Vec::new();
    embedded::check(&object, resource, "", level, &mut found);
    let texts: Vec<String> = found.iter().map(StatusCause::text).collect();
    match &texts[..] {
        [] => check_value(node, default, field, causes),
        [one] => wrong(one.clone()),
        many => wrong(format!("[{}]", many.join(", "))),
    }
}

/// Returns a resource that has nothing but a value at the end of a way.
// `SurroundingObjectFunc`.
fn surrounded(way: Way<'_>, value: Value) -> Value {
    match way {
        Way::Behind(before, step) => {
            let value = match step {
                Step::Member(name) => Map::from_iter([(name.to_owned(), value)]).into(),
                Step::Item => json!([value]),
            };
            surrounded(*before, value)
        }
        Way::Here => {
            let mut object = value;
            if let Value::Object(members) = &mut object {
                for (name, value) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
                    members.entry(name).or_insert_with(|| value.into());
                }
            }
            object
        }
    }
}

fn check_one(
    node: &Node,
    default: &Value,
    is_resource: bool,
    pruned: bool,
    field: &str,
    causes: &mut Vec<StatusCause>,
) {
    let level = if is_resource {
        Level::Resource
    } else {
        Level::Part
    };
    let mut read = default.clone();
    let coerced = embedded::coerce(&mut read, node, field, level, &mut Vec::new());
    if pruned && !is_pruned(node, is_resource, default) {
        let rule = "must not have unknown fields";
        // The server shows a default as it has read it by then.
        causes.push(StatusCause::invalid(field, &read, rule));
    }
    if let Err(cause) = coerced {
        causes.push(cause);
        return;
    }
    let before = causes.len();
    embedded::check(&read, node, field, level, causes);
    if causes.len() == before {
        check_value(node, &read, field, causes);
    }
}

fn check_value(node: &Node, default: &Value, field: &str, causes: &mut Vec<StatusCause>) {
    let (old, path) = (None, "");
    let value = default;
    let outcome = node.check(Subject { value, old, path });
    if outcome.is_valid() {
        causes.extend(rules::evaluate_default(node, default, field));
    }
    let found = outcome.faults().iter();
    causes.extend(found.map(|fault| fault.cause(Some(field))));
}
