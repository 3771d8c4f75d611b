//! What the schema of a CRD does to custom resources.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::{Resource, Scale};
use lariat_apimachinery::object::Object;
use lariat_apimachinery::structural::Structural;
use lariat_apimachinery::structural::json_path::JsonPath;
use lariat_apimachinery::{go_text, schema};
use serde_json::Value;

use super::part::{Part, Replaced};
use crate::store::{Draft, EventType, Stored};

/// Prunes an object as its schema wants it, and fills in defaults.
///
/// Returns the paths of unknown members.
pub(crate) fn conform(resource: &Resource, object: &mut Object) -> Vec<String> {
    match &resource.schema {
        Some(schema) => with_value(object, |object| refine(schema, object)),
        None => Vec::new(),
    }
}

/// Does the same with what an apply made, whose nulls stay.
pub(crate) fn conform_applied(resource: &Resource, object: &mut Object) -> Vec<String> {
    let refine = |schema: &Structural, object: &mut Value| {
        let unknown = schema.prune_unknown(object);
        schema.default(object);
        unknown
    };
    match &resource.schema {
        Some(schema) => with_value(object, |object| refine(schema, object)),
        None => Vec::new(),
    }
}

/// Reads a stored object by the present schema, which may have changed since.
pub(crate) fn present(resource: &Resource, stored: &Stored) -> Object {
    refined(resource, stored).unwrap_or_else(|| stored.object())
}

/// Returns a state in the present schema, if it was written under another.
pub(crate) fn reread(resource: &Resource, stored: &Stored) -> Option<Stored> {
    let object = refined(resource, stored)?;
    Some(Draft::new(&object).stamp(stored.revision(), EventType::Modified))
}

fn refined(resource: &Resource, stored: &Stored) -> Option<Object> {
    let schema = resource.schema.as_ref()?;
    let outdated = resource.outdated;
    if !outdated.always && stored.revision() > outdated.up_to {
        return None;
    }
    let mut object = stored.object();
    with_value(&mut object, |object| refine(schema, object));
    Some(object)
}

/// Fills in defaults and zero values of objects that the server composed.
pub(crate) fn complete(resource: &Resource, object: &mut Object) {
    match &resource.schema {
        Some(schema) => with_value(object, |object| schema.default(object)),
        // CRDs are stored in JSON.
        None if resource.kind == "CustomResourceDefinition" => {
            schema::fill_zeros(resource.types().root(), object);
        }
        None => schema::store_zeros(resource.types().root(), object),
    }
}

/// Puts an object into the form in which it is stored, once it was found valid.
///
/// The version it was written in may have other members and defaults.
pub(crate) fn store(resource: &Resource, object: &mut Object) {
    // A webhook converts it later, which needs all that it has.
    if resource.conversion.is_none() {
        refine_stored(resource, object);
    }
}

/// Prunes an object of the version that is stored, and fills in defaults.
pub(crate) fn refine_stored(resource: &Resource, object: &mut Object) {
    if let Some(schema) = &resource.storage_schema {
        with_value(object, |object| refine(schema, object));
    }
}

/// Finds what is wrong with a custom resource by its schema.
pub(crate) fn validate(
    resource: &Resource,
    object: &Object,
    replaced: Option<Replaced<'_>>,
) -> Vec<StatusCause> {
    let Some(schema) = &resource.schema else {
        return Vec::new();
    };
    let value = Value::Object(object.clone());
    let old = replaced.map(|replaced| (replaced.part, Value::Object(replaced.old.clone())));
    let mut causes = match &old {
        Some((Part::Status, old)) => schema.validate_status(&value, old),
        Some((_, old)) => schema.validate(&value, Some(old)),
        None => schema.validate(&value, None),
    };
    if let Some(scale) = &resource.rules.scale {
        causes.extend(validate_scale(scale, &value));
    }
    causes
}

fn refine(schema: &Structural, object: &mut Value) -> Vec<String> {
    let unknown = schema.prune(object);
    schema.default(object);
    unknown
}

/// Works on an object as on a value.
fn with_value<T>(object: &mut Object, work: impl FnOnce(&mut Value) -> T) -> T {
    let mut value = Value::Object(std::mem::take(object));
    let result = work(&mut value);
    if let Value::Object(members) = value {
        *object = members;
    }
    result
}

/// Checks the numbers of replicas that the scale subresource shows.
fn validate_scale(scale: &Scale, object: &Value) -> Vec<StatusCause> {
    let check = |path: &JsonPath| {
        let field = format!(".{}", path.members()?.join("."));
        let replicas = match number_at(object, &path.members()?) {
            Ok(number) => number?,
            Err(wrong) => return Some(StatusCause::invalid(&field, &0.into(), &wrong)),
        };
        let rule = match replicas {
            ..0 => "should be a non-negative integer".to_owned(),
            count if count > i64::from(i32::MAX) => {
                format!("should be less than or equal to {}", i32::MAX)
            }
            _ => return None,
        };
        Some(StatusCause::invalid(&field, &replicas.into(), &rule))
    };
    let numbers = [&scale.spec_path, &scale.status_path];
    let numbers = numbers.into_iter().filter_map(check);
    numbers.chain(wrong_selector(scale, object)).collect()
}

/// Finds what is in the way of the selector that the scale shows.
fn wrong_selector(scale: &Scale, object: &Value) -> Option<StatusCause> {
    let path = scale.selector_path.as_ref()?.members()?;
    let (last, way) = path.split_last()?;
    // The text itself may have any type; a number there would be found by its schema.
    let wrong = number_at(object, &[way, &[last]].concat()).err()?;
    let is_on_the_way = wrong.ends_with("expected map[string]interface{}");
    let field = format!(".{}", path.join("."));
    is_on_the_way.then(|| StatusCause::invalid(&field, &"".into(), &wrong))
}

/// Returns an integer by its path, or Go's error for a value of another type.
fn number_at(object: &Value, path: &[impl AsRef<str>]) -> Result<Option<i64>, String> {
    let wrong = |upto: usize, found: &Value, wanted: &str| {
        let names: Vec<&str> = path[..upto].iter().map(AsRef::as_ref).collect();
        let (names, shown) = (names.join("."), go_text::value(found));
        let found = go_text::type_of(found);
        format!(".{names} accessor error: {shown} is of the type {found}, expected {wanted}")
    };
    let mut at = object;
    for (depth, name) in path.iter().enumerate() {
        at = match at {
            Value::Object(members) => match members.get(name.as_ref()) {
                Some(value) => value,
                None => return Ok(None),
            },
            other => return Err(wrong(depth + 1, other, "map[string]interface{}")),
        };
    }
    let number = at.as_i64();
    number
        .map(Some)
        .ok_or_else(|| wrong(path.len(), at, "int64"))
}
