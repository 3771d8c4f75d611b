//! What a schema of a CRD may say.
//!
//! Source: `ValidateCustomResourceDefinitionOpenAPISchema` of apiextensions-apiserver.

use serde_json::Value;

use super::costs::{Costs, most_below};
use super::lists;
use super::parts::{array, flag, is_set, text};
use super::position::Position;
use super::rules::check_rules;
use super::structure::{self, properties};
use super::tolerated::Tolerated;
use crate::cause::StatusCause;
use crate::structural::Structural;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The members that a root schema may have if there is a status subresource.
///
/// In the order of the API server.
// `allowedFieldsAtRootSchema`, whose Go names are part of the message.
const AT_ROOT: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    (
        "x-kubernetes-preserve-unknown-fields",
        "XPreserveUnknownFields",
    ),
    ("x-kubernetes-validations", "XValidations"),
];

/// Members that OpenAPI knows and CRDs must not have.
const UNSUPPORTED: [&str; 6] = [
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
];

/// Returns whether OpenAPI has a type of this name; an empty one is none.
pub(super) fn is_known_type(name: &str) -> bool {
    name.is_empty() || TYPES.contains(&name)
}

/// Checks the schema of a version.
///
/// `path` is the path of the object around `openAPIV3Schema`.
pub(super) fn check(
    validation: &Value,
    has_status: bool,
    tolerated: Tolerated,
    path: &str,
) -> Vec<StatusCause> {
    let Some(schema) = validation.get("openAPIV3Schema").filter(|s| s.is_object()) else {
        return Vec::new();
    };
    let path = &*format!("{path}.openAPIV3Schema");
    let mut causes = Vec::new();
    // With a status subresource the root may only say what can be checked for spec and status apart.
    if has_status {
        causes.extend(check_root(schema, path));
    }
    if flag(schema, "nullable") {
        let rule = "nullable cannot be true at the root";
        causes.push(StatusCause::forbidden(&format!("{path}.nullable"), rule));
    }
    let unconverted = structure::unconverted(schema);
    let mut unsound = Vec::new();
    if unconverted.is_none() {
        unsound = structure::check(schema, path);
        if unsound.is_empty() {
            // Defaults of a schema that is not structural cannot be checked, because it cannot be pruned.
            let prunes = !tolerated.unpruned_defaults;
            unsound = Structural::check_defaults(schema, path, prunes);
        }
    }
    let may_have_rules = unsound.is_empty() && unconverted.is_none();
    causes.append(&mut unsound);
    let root = true;
    let place = Position {
        path,
        root,
        tolerated,
        most_values: Some(1),
        ..Position::default()
    };
    let mut found = Found {
        of_schema: causes,
        of_rules: Vec::new(),
        costs: Costs::default(),
    };
    check_schema(schema, place, may_have_rules, &mut found);
    // `AllErrors`: rules come last, however deep they are.
    let mut causes = found.of_schema;
    causes.append(&mut found.of_rules);
    let mut costs = found.costs.causes(path);
    if let Some(reason) = unconverted.filter(|_| causes.is_empty()) {
        causes.push(StatusCause::invalid(path, &"".into(), reason));
    }
    causes.append(&mut costs);
    causes
}

fn check_root(schema: &Value, path: &str) -> Option<StatusCause> {
    let kind = text(schema, "type");
    if !matches!(kind, "" | "object") {
        let rule = "only \"object\" is allowed as the type at the root of the schema if the status \
            subresource is enabled";
        let field = format!("{path}.type");
        return Some(StatusCause::invalid(&field, &kind.into(), rule));
    }
    let allowed = |member: &str| AT_ROOT.iter().any(|(each, _)| *each == member);
    let mut members = schema.as_object()?.iter();
    // One cause for the whole schema, however many members are wrong.
    members.find(|(member, value)| !allowed(member) && is_set(value))?;
    let names: Vec<&str> = AT_ROOT.iter().map(|(_, name)| *name).collect();
    let rule = format!(
        "only [{}] fields are allowed at the root of the schema if the status subresource is \
         enabled",
        names.join(" ")
    );
    Some(StatusCause::invalid(path, schema, &rule))
}

/// The faults of a schema, and those of its rules.
// `OpenAPISchemaErrorList`.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) of_schema: Vec<StatusCause>,
    pub(super) of_rules: Vec<StatusCause>,
    pub(super) costs: Costs,
}

/// Checks a schema and all below it.
fn check_schema(schema: &Value, place: Position<'_>, may_have_rules: bool, found: &mut Found) {
    let before = found.of_schema.len();
    check_members(schema, place, &mut found.of_schema);
    check_below(schema, place, may_have_rules, found);
    // After what lies below, as in Go, where these checks stand behind the recursion.
    lists::check(schema, place.tolerated, place.path, &mut found.of_schema);
    // A rule is compiled only where nothing is wrong with its schema; another broken rule does not count.
    let may_compile = |found: &Found| may_have_rules && found.of_schema.len() == before;
    check_rules(schema, place, may_compile, found);
}

fn check_members(schema: &Value, place: Position<'_>, causes: &mut Vec<StatusCause>) {
    let field = |member: &str| format!("{}.{member}", place.path);
    let kind = text(schema, "type");
    if !place.tolerated.types && !is_known_type(kind) {
        let supported = TYPES.map(|kind| format!("{kind:?}")).join(", ");
        causes.push(StatusCause::unsupported(&field("type"), kind, &supported));
    }
    // Null as a default is none, as everywhere in structural schemas.
    let has_default = schema.get("default").is_some_and(|d| !d.is_null());
    if let Some(reason) = place.no_default.filter(|_| has_default) {
        let rule = format!("must not be set {reason}");
        causes.push(StatusCause::forbidden(&field("default"), &rule));
    }
    for member in UNSUPPORTED {
        let is_there = match (member, schema.get(member)) {
            (_, None | Some(Value::Null)) => false,
            // They are pointers in Go.
            ("additionalItems" | "$ref" | "dependencies", Some(_)) => true,
            (_, Some(Value::Object(members))) => !members.is_empty(),
            (_, Some(value)) => is_set(value),
        };
        if is_there {
            let rule = format!("{member} is not supported");
            causes.push(StatusCause::forbidden(&field(member), &rule));
        }
    }
    if kind == "null" {
        let rule = "type cannot be set to null, use nullable as an alternative";
        causes.push(StatusCause::forbidden(&field("type"), rule));
    }
    if !array(schema, "items").is_empty() {
        let rule = "items must be a schema object and not an array";
        causes.push(StatusCause::forbidden(&field("items"), rule));
    }
    if place.in_metadata && flag(schema, "x-kubernetes-embedded-resource") {
        let rule = "must not be used inside of resource meta";
        causes.push(StatusCause::forbidden(
            &field("x-kubernetes-embedded-resource"),
            rule,
        ));
    }
    if flag(schema, "uniqueItems") {
        let rule =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        causes.push(StatusCause::forbidden(&field("uniqueItems"), rule));
    }
    let additional = schema.get("additionalProperties").filter(|a| !a.is_null());
    // `true` allows everything beside the properties, which contradicts nothing.
    let is_limiting = additional.is_some_and(|additional| *additional != Value::Bool(true));
    if is_limiting && properties(schema).count() > 0 {
        let rule = "additionalProperties and properties are mutual exclusive";
        causes.push(StatusCause::forbidden(&field("additionalProperties"), rule));
    }
}

fn check_below(schema: &Value, place: Position<'_>, rules: bool, found: &mut Found) {
    let child = |member: &str| format!("{}.{member}", place.path);
    let below = most_below(schema);
    let most_values = place.most_values.zip(below);
    let inner = Position {
        root: false,
        most_values: most_values.map(|(around, each)| around.saturating_mul(each)),
        ..place
    };
    if let Some(additional) = schema.get("additionalProperties").filter(|a| a.is_object()) {
        let reason = "inside additionalProperties applying to object metadata";
        let path = &*child("additionalProperties");
        // The inner reason replaces that of the level above.
        let no_default = inner.in_metadata.then_some(reason).or(inner.no_default);
        let below = Position {
            path,
            no_default,
            ..inner
        };
        check_schema(additional, below, rules, found);
    }
    let is_resource = place.root || flag(schema, "x-kubernetes-embedded-resource");
    for (name, property) in properties(schema) {
        let is_meta = is_resource && matches!(&**name, "apiVersion" | "kind" | "metadata");
        // Type and metadata of the root come from the request; a default for them would be without effect.
        let reason = format!("in top-level {name}");
        let below = Position {
            path: &child(&format!("properties[{name}]")),
            in_metadata: inner.in_metadata || is_meta,
            no_default: if is_meta && place.root {
                Some(&reason)
            } else {
                inner.no_default
            },
            ..inner
        };
        check_schema(property, below, rules, found);
    }
    // Values in a list without keys have no old value, also if the list is far above.
    for member in ["not", "items"] {
        if let Some(each) = schema.get(member).filter(|each| each.is_object()) {
            let is_map = text(schema, "x-kubernetes-list-type") == "map";
            let uncorrelated = inner
                .uncorrelated
                .or((member == "items" && !is_map).then_some(place.path));
            let below = Position {
                path: &child(member),
                uncorrelated,
                ..inner
            };
            check_schema(each, below, rules, found);
        }
    }
    check_named_and_listed(schema, inner, rules, found);
}

/// Checks the schemas in the maps and lists below a schema.
///
/// These are `definitions`, `dependencies`, `allOf`, `oneOf`, `anyOf` and `items`.
fn check_named_and_listed(schema: &Value, inner: Position<'_>, rules: bool, found: &mut Found) {
    let child = |member: &str| format!("{}.{member}", inner.path);
    for member in ["definitions", "dependencies"] {
        let all = schema.get(member).and_then(Value::as_object);
        for (name, each) in all.into_iter().flatten() {
            let path = &*child(&format!("{member}[{name}]"));
            if each.is_object() {
                check_schema(each, Position { path, ..inner }, rules, found);
            }
        }
    }
    for member in ["allOf", "oneOf", "anyOf", "items"] {
        for (at, each) in array(schema, member).iter().enumerate() {
            let path = &*child(&format!("{member}[{at}]"));
            check_schema(each, Position { path, ..inner }, rules, found);
        }
    }
}
