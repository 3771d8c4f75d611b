//! The form of a scale: what it shows of its object, and where the replicas are.
//!
//! Source: `scaleFromCustomResource` in `k8s.io/apiextensions-apiserver/pkg/registry/customresource`, and
//! `scaleFromDeployment` and its like in `k8s.io/kubernetes/pkg/registry/apps`.

use std::sync::LazyLock;

use lariat_apimachinery::managed::ScaleHandler;
use lariat_apimachinery::object::Object;
use lariat_apimachinery::schema::{self, DecodeError, Schema};
use lariat_apimachinery::structural::json_path::JsonPath;
use serde_json::{Map, Value, json};

use crate::status::ApiError;
use crate::store::Stored;
use crate::strategy::{selector_text, type_mismatch};
use crate::verbs::call::Call;
use crate::verbs::decode::Expected;

pub(super) const KIND: Expected<'static> = Expected {
    kind: "Scale",
    api_version: "autoscaling/v1",
    custom: false,
};

/// The replicas that a patch of a custom resource sees if none are set.
///
/// Source: `scaleUpdatedObjectInfo`, by which it knows whether the patch sets them.
pub(super) const UNSET: i64 = i32::MIN as i64;

/// The path of the replicas in built-in kinds.
pub(super) const SPEC_REPLICAS: [&str; 2] = ["spec", "replicas"];

/// Decodes a scale; returns the members its type does not have.
pub(super) fn read(scale: &mut Object) -> Result<Vec<String>, DecodeError> {
    schema::decode(types().root(), scale)
}

/// Returns the types of a scale.
pub(super) fn types() -> &'static Schema {
    static TYPES: LazyLock<Schema> = LazyLock::new(|| {
        let builtin = schema::builtin(KIND.api_version, KIND.kind);
        builtin.unwrap_or_else(|| schema::custom(None))
    });
    &TYPES
}

/// Returns the scale that a write changes, with the owners of its replicas.
pub(super) fn owned_scale(
    call: &Call,
    object: &Object,
    stored: &Stored,
) -> Result<Object, ApiError> {
    check_paths(call, object)?;
    let replicas = replicas_of(call, object).unwrap_or(UNSET);
    let mut scale = scale_of(call, object, replicas, stored);
    let (path, api_version) = (path(call), call.resource.api_version());
    let handler = ScaleHandler {
        path: &path,
        api_version: &api_version,
    };
    handler.to_scale(object, &mut scale);
    Ok(scale)
}

/// Returns the path of the replicas.
pub(super) fn path(call: &Call) -> Vec<&str> {
    let paths = call.resource.rules.scale.as_ref();
    let custom = paths.and_then(|paths| paths.spec_path.members());
    custom.unwrap_or_else(|| SPEC_REPLICAS.to_vec())
}

pub(super) fn set(object: &mut Object, path: &[&str], replicas: i64) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        object.insert((*first).to_owned(), replicas.into());
        return;
    }
    let inner = object.entry(*first).or_insert_with(|| json!({}));
    if let Value::Object(inner) = inner {
        set(inner, rest, replicas);
    }
}

/// Returns the wanted replicas of an object; a custom resource may have none.
pub(super) fn replicas_of(call: &Call, object: &Object) -> Option<i64> {
    let found = at(object, &path(call)).and_then(Value::as_i64);
    match call.resource.rules.scale {
        Some(_) => found,
        None => Some(found.unwrap_or(0)),
    }
}

pub(super) fn at<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(object.get(*first)?, |value, name| value.get(*name))
}

/// Returns the present replicas of an object and the selector of its Pods.
fn status_of(call: &Call, object: &Object) -> (i64, String) {
    let (replicas, selector) = match &call.resource.rules.scale {
        Some(paths) => {
            let found = |path: &JsonPath| at(object, &path.members()?);
            let selector = paths.selector_path.as_ref().and_then(found);
            (
                found(&paths.status_path).and_then(Value::as_i64),
                selector.and_then(Value::as_str).map(str::to_owned),
            )
        }
        None => (
            at(object, &["status", "replicas"]).and_then(Value::as_i64),
            at(object, &["spec", "selector"]).and_then(selector_text),
        ),
    };
    (replicas.unwrap_or(0), selector.unwrap_or_default())
}

/// Refuses a custom resource in which a path of its scale leads to another type.
pub(super) fn check_paths(call: &Call, object: &Object) -> Result<(), ApiError> {
    let Some(paths) = &call.resource.rules.scale else {
        return Ok(());
    };
    let selector = paths.selector_path.as_ref();
    let wanted = [(&paths.spec_path, "int64"), (&paths.status_path, "int64")]
        .into_iter()
        .chain(selector.map(|path| (path, "string")));
    for (path, wanted) in wanted {
        if let Some(path) = path.members()
            && let Some(fault) = type_mismatch(object, &path, wanted)
        {
            return Err(ApiError::internal(fault));
        }
    }
    Ok(())
}

/// Makes the scale of an object.
pub(super) fn scale_of(call: &Call, object: &Object, replicas: i64, stored: &Stored) -> Object {
    let mut metadata = Map::new();
    for member in ["name", "namespace", "uid", "creationTimestamp"] {
        let value = object
            .get("metadata")
            .and_then(|metadata| metadata.get(member));
        if let Some(value) = value {
            metadata.insert(member.to_owned(), value.clone());
        }
    }
    metadata.insert(
        "resourceVersion".into(),
        stored.revision().to_string().into(),
    );
    let (present, selector) = status_of(call, object);
    let mut status = json!({"replicas": present});
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    let mut scale = Object::new();
    scale.insert("kind".into(), KIND.kind.into());
    scale.insert("apiVersion".into(), KIND.api_version.into());
    scale.insert("metadata".into(), metadata.into());
    // Go leaves out a number that is 0.
    let spec = if replicas == 0 {
        json!({})
    } else {
        json!({"replicas": replicas})
    };
    scale.insert("spec".into(), spec);
    scale.insert("status".into(), status);
    scale
}
