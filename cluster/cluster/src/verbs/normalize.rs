//! The form of sent objects: decoded as their kind, with defaults filled in.

use std::sync::atomic::Ordering;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::go_text;
use lariat_apimachinery::kinds::{Generation, Resource};
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::schema::{self, DecodeError, TypeRef};
use serde_json::Value;

use crate::status::ApiError;
use crate::strategy;
use crate::verbs::call::Call;
use crate::wire::document::Duplicates;

/// The handling of unknown and duplicate fields: `fieldValidation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, and the client is warned.
    Warn,
    /// The request is refused.
    Strict,
}

impl FieldValidation {
    /// Reads `fieldValidation`, whose value was checked.
    pub(super) fn of(call: &Call) -> Self {
        match call.query.text("fieldValidation") {
            Some("Ignore") => Self::Ignore,
            Some("Strict") => Self::Strict,
            _ => Self::Warn,
        }
    }
}

/// The origin of an object, which decides how errors are worded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin<'a> {
    /// It is the body.
    Body,
    /// It is what a patch made of the present state.
    Patch,
    /// It is what an apply made of it; the object that was sent.
    Apply(&'a Object),
}

/// Converts an object to the form of its kind.
///
/// `duplicates` are the members that were in the document twice.
pub(super) fn normalize(
    call: &Call,
    object: &mut Object,
    origin: Origin<'_>,
    duplicates: &Duplicates,
) -> Result<(), ApiError> {
    if is_converted(call, origin) {
        // FromUnstructured sets numbers by reflection, which does not check their range.
        let typed = call.resource.types().root();
        for (name, value) in object.iter_mut() {
            if let Some(below) = typed.member(name) {
                schema::wrap_numbers(below, value);
            }
        }
    }
    if call.resource.rules.generation == Generation::ContentAsSent {
        // The policy types have a default, which takes the place of an empty list.
        let content = ["spec", "webhooks"].into_iter();
        let typed = call.resource.types().root();
        let mut content = content.filter(|name| object.contains_key(*name));
        let has_empty = content.any(|name| {
            let content = Object::from_iter([(name.to_owned(), object[name].clone())]);
            schema::has_empty(typed, &content.into(), &["policyTypes"])
        });
        call.has_empty.store(has_empty, Ordering::Relaxed);
    }
    if call.resource.kind == "Pod" && !call.resource.rules.custom {
        // Go tells an overhead without amounts from none.
        let spec = object.get("spec");
        let overhead = spec.and_then(|spec| spec.get("overhead")?.as_object());
        let has_empty = overhead.is_some_and(Object::is_empty);
        call.has_empty.store(has_empty, Ordering::Relaxed);
    }
    let read = match origin {
        Origin::Apply(_) => strategy::read_applied(&call.resource, object),
        Origin::Body | Origin::Patch => strategy::read(&call.resource, object),
    };
    let unknown = read.map_err(|error| match origin {
        Origin::Body => refuse_body(&call.resource, &error.to_string()),
        Origin::Patch => refuse_patch(call, &error),
        Origin::Apply(applied) => refuse_applied(&call.resource, applied, &error.as_conversion()),
    })?;
    strategy::read_annotations(&call.resource, object)
        .map_err(|reason| refuse_annotation(call, origin, object, &reason))?;
    let typed = Some(call.resource.types().root()).filter(|_| !call.resource.rules.custom);
    report(call, origin, typed, &unknown, duplicates)
        .map_err(|reason| refuse(call, origin, &reason))?;
    let repeated = strategy::deduplicate_owners(object);
    if !repeated.is_empty() {
        call.warnings.add(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        ));
    }
    Ok(())
}

/// Warns of members that are unknown or there twice.
///
/// `typed` is the built-in type of the object, if it has one. Returns why the members are refused, if the client wants
/// that.
pub(super) fn report(
    call: &Call,
    origin: Origin<'_>,
    typed: Option<TypeRef<'_>>,
    unknown: &[String],
    duplicates: &Duplicates,
) -> Result<(), String> {
    let validation = FieldValidation::of(call);
    if validation == FieldValidation::Ignore || unknown.is_empty() && duplicates.is_empty() {
        return Ok(());
    }
    let is_strict = validation == FieldValidation::Strict;
    let problems = match typed {
        // Of a built-in kind, Go's decoder finds both in one pass.
        Some(typed) if matches!(origin, Origin::Body) && call.sends_json() => {
            schema::strict_errors(typed, &call.body)
        }
        _ => {
            let found = if is_strict {
                duplicates.errors()
            } else {
                duplicates.warnings()
            };
            let is_bounded = typed.is_some() && !call.is_strategic();
            let most = if is_bounded {
                schema::MAX_STRICT_ERRORS
            } else {
                usize::MAX
            };
            let unknown = unknown.iter().take(most);
            let unknown = unknown.map(|path| format!("unknown field {path:?}"));
            found.into_iter().chain(unknown).collect()
        }
    };
    if is_strict && !problems.is_empty() {
        return Err(format!("strict decoding error: {}", problems.join(", ")));
    }
    problems
        .into_iter()
        .for_each(|text| call.warnings.add(text));
    Ok(())
}

/// Returns whether Go makes the object from a map, without JSON.
fn is_converted(call: &Call, origin: Origin<'_>) -> bool {
    let without_json = match origin {
        Origin::Body => false,
        Origin::Patch => call.is_strategic(),
        Origin::Apply(_) => true,
    };
    without_json && !call.resource.rules.custom
}

/// Refuses an object that cannot be converted to Go's internal type.
fn refuse_annotation(call: &Call, origin: Origin<'_>, object: &Object, reason: &str) -> ApiError {
    match origin {
        Origin::Patch if call.is_strategic() => ApiError::internal(reason),
        Origin::Apply(_) => {
            let (resource, name) = (&call.resource, metadata_text(object, "name"));
            let (version, kind) = (resource.api_version(), &resource.kind);
            ApiError::internal(format!(
                "failed to convert to unversioned (/{name}; {version}, Kind={kind}): {reason}"
            ))
        }
        _ => refuse(call, origin, reason),
    }
}

pub(super) fn refuse(call: &Call, origin: Origin<'_>, reason: &str) -> ApiError {
    match origin {
        Origin::Body => refuse_body(&call.resource, reason),
        Origin::Patch => {
            let patch = Value::from(shown_patch(call));
            ApiError::invalid_patch(StatusCause::invalid("patch", &patch, reason))
        }
        Origin::Apply(applied) => refuse_applied(&call.resource, applied, reason),
    }
}

/// Refuses, with 500, an apply whose result has an unknown type.
///
/// A genuine server does the same.
fn refuse_applied(resource: &Resource, applied: &Object, reason: &str) -> ApiError {
    let Resource {
        group,
        version,
        kind,
        ..
    } = resource;
    let kind = format!("{group}/{version}, Kind={kind}");
    let [namespace, name] = ["namespace", "name"].map(|member| metadata_text(applied, member));
    ApiError::internal(format!(
        "failed to convert new object ({namespace}/{name}; {kind}) to proper version: unable to convert unstructured \
         object to {kind}: {reason}"
    ))
}

/// Refuses a patch that makes something else of an object than one of its kind.
///
/// The value of the cause is the patch; for patches in JSON a real server has the whole object there.
pub(super) fn refuse_patch(call: &Call, error: &DecodeError) -> ApiError {
    let reason = if call.is_strategic() {
        error.as_conversion()
    } else {
        error.to_string()
    };
    let patch = Value::from(shown_patch(call));
    ApiError::invalid_patch(StatusCause::invalid("patch", &patch, &reason))
}

fn shown_patch(call: &Call) -> String {
    match serde_json::from_slice::<Value>(&call.body) {
        // By then it is a map in Go, and printed as one.
        Ok(patch) if call.is_strategic() => go_text::value(&patch),
        _ => String::from_utf8_lossy(&call.body).into_owned(),
    }
}

/// Refuses an object that is none of its kind.
pub(super) fn refuse_body(resource: &Resource, reason: &str) -> ApiError {
    let Resource { kind, version, .. } = resource;
    ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: {reason}"
    ))
}
