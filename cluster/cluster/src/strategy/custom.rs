//! Applies the schema of a CRD to custom resources.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::{Resource, Scale};
use lariat_apimachinery::object::Object;
use lariat_apimachinery::schema::DecodeError;
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

/// Reads metadata, and resources inside of the object, as Go reads them into structures.
///
/// Returns the paths of unknown members.
pub(super) fn coerce(resource: &Resource, object: &mut Object) -> Result<Vec<String>, DecodeError> {
    match &resource.schema {
        Some(schema) => with_value(object, |object| schema.coerce(object)),
        None => Ok(Vec::new()),
    }
}

/// Conforms the result of an apply, whose nulls stay until it was found valid.
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
    with_value(&mut object, |object| {
        // Defaults are those of the version that is stored, as Go fills them in when it decodes an object.
        let decoded = resource.storage_schema.as_ref().unwrap_or(schema);
        decoded.default(object);
        schema.prune(object);
    });
    Some(object)
}

/// Prunes an object that was converted to the version of a resource.
///
/// It gets no defaults of that version, as those were due when it was decoded.
///
/// Source: `schemaCoercingConverter` in `k8s.io/apiextensions-apiserver/pkg/apiserver`.
pub(crate) fn prune(resource: &Resource, object: &mut Object) {
    if let Some(schema) = &resource.schema {
        with_value(object, |object| schema.prune(object));
    }
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

/// Converts a valid object to its stored form.
///
/// The version it was written in may have other members and defaults. Nulls that an apply left are gone as soon as
/// Go reads the object again, which it does for the answer.
pub(crate) fn store(resource: &Resource, object: &mut Object) {
    if let Some(schema) = &resource.schema {
        with_value(object, |object| schema.drop_nulls(object));
    }
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

/// Validates a custom resource by its schema.
///
/// `metadata` is what is wrong with its metadata, which may keep rules from being evaluated.
pub(crate) fn validate(
    resource: &Resource,
    object: &Object,
    replaced: Option<Replaced<'_>>,
    metadata: &[StatusCause],
) -> Vec<StatusCause> {
    let Some(schema) = &resource.schema else {
        return Vec::new();
    };
    let value = Value::Object(object.clone());
    let old = replaced.map(|replaced| (replaced.part, Value::Object(replaced.old.clone())));
    let mut causes = match &old {
        Some((Part::Status, old)) => schema.validate_status(&value, old, metadata),
        Some((_, old)) => schema.validate(&value, Some(old), metadata),
        None => schema.validate(&value, None, metadata),
    };
    if let Some(scale) = &resource.rules.scale {
        let part = replaced.map_or(Part::Main, |replaced| replaced.part);
        causes.extend(validate_scale(scale, part, object));
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

/// Validates the fields that the scale subresource shows; a write of the status does not change the wanted replicas.
///
/// Source: `ValidateScaleSpec` and `ValidateScaleStatus` in
/// `k8s.io/apiextensions-apiserver/pkg/registry/customresource`.
fn validate_scale(scale: &Scale, part: Part, object: &Object) -> Vec<StatusCause> {
    let numbers = [&scale.spec_path, &scale.status_path].into_iter();
    let numbers = numbers.skip(usize::from(part == Part::Status));
    let wrong_number = |path: &JsonPath| check_replicas(object, &path.members()?);
    let wrong_selector = |path: &JsonPath| {
        let path = path.members()?;
        let wrong = type_mismatch(object, &path, "string")?;
        Some(StatusCause::invalid(&dotted(&path), &"".into(), &wrong))
    };
    let selector = scale.selector_path.iter().filter_map(wrong_selector);
    numbers.filter_map(wrong_number).chain(selector).collect()
}

fn check_replicas(object: &Object, path: &[&str]) -> Option<StatusCause> {
    let field = dotted(path);
    if let Some(wrong) = type_mismatch(object, path, "int64") {
        return Some(StatusCause::invalid(&field, &0.into(), &wrong));
    }
    let (first, rest) = path.split_first()?;
    let mut rest = rest.iter();
    let replicas = rest
        .try_fold(object.get(*first)?, |at, name| at.get(*name))?
        .as_i64()?;
    let rule = match replicas {
        ..0 => "should be a non-negative integer".to_owned(),
        count if count > i64::from(i32::MAX) => {
            format!("should be less than or equal to {}", i32::MAX)
        }
        _ => return None,
    };
    Some(StatusCause::invalid(&field, &replicas.into(), &rule))
}

fn dotted(path: &[&str]) -> String {
    format!(".{}", path.join("."))
}

/// Returns the error of the value at a path that is not of the Go type `wanted`.
///
/// Source: `NestedFieldNoCopy` in `k8s.io/apimachinery/pkg/apis/meta/v1/unstructured`.
pub(crate) fn type_mismatch(object: &Object, path: &[&str], wanted: &str) -> Option<String> {
    let fault = |depth: usize, value: &Value, wanted: &str| {
        let (path, shown) = (dotted(&path[..depth]), go_text::value(value));
        let is = go_text::type_of(value);
        format!("{path} accessor error: {shown} is of the type {is}, expected {wanted}")
    };
    let (first, rest) = path.split_first()?;
    let mut value = object.get(*first)?;
    for (index, name) in rest.iter().enumerate() {
        value = match value {
            Value::Null => return None,
            Value::Object(members) => members.get(*name)?,
            other => return Some(fault(index + 2, other, "map[string]interface{}")),
        };
    }
    (go_text::type_of(value) != wanted).then(|| fault(path.len(), value, wanted))
}
