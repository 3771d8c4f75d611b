//! Server-side apply.

use lariat_apimachinery::go_json;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::schema;
use serde_json::Value;

use super::identity::check_identity;
use crate::access::{Attributes, Subject};
use crate::status::ApiError;
use crate::verbs::answer::Answer;
use crate::verbs::call::Call;
use crate::verbs::creation::Creation;
use crate::verbs::normalize::{self, FieldValidation, Origin};
use crate::verbs::ownership::{self, Writer};
use crate::verbs::{create, update};
use crate::wire::document::{Document, Duplicates};
use crate::wire::verb::Verb;

pub(super) async fn apply(call: &Call, dry_run: bool) -> Result<Answer, ApiError> {
    let force = call.query.flag("force").unwrap_or(false);
    let key = call.resource.key(call.namespace(), call.name());
    let creates = call.target.subresource.is_none() || creates_by_status(call);
    if !creates && call.server.store.get(call.resource.table, &key).is_none() {
        return Err(call.not_found());
    }
    let (applied, duplicates) = read(call, &call.resource.api_version(), &call.resource.kind)?;
    let writer = Writer::of(call);
    loop {
        let current = call.server.store.get(call.resource.table, &key);
        let live = match &current {
            Some(current) => Some(call.present(current).await?),
            None => None,
        };
        if live.is_none() && !creates {
            return Err(call.not_found());
        }
        // In later turns, too: the object may have been deleted since the turn before.
        if live.is_none() {
            check_create(call)?;
            Creation::of(call).check_admission(call.name())?;
        }
        let mut merged = writer
            .write(&call.resource)
            .apply(live.as_ref(), &applied, force)
            .map_err(|refused| ownership::refusal(call, &applied, &refused))?;
        merged.insert("kind".into(), call.resource.kind.clone().into());
        merged.insert("apiVersion".into(), call.resource.api_version().into());
        let origin = Origin::Apply(&applied);
        normalize::normalize(call, &mut merged, origin, &Duplicates::none())?;
        check_duplicates(call, &duplicates)?;
        let (Some(current), Some(live)) = (current, live) else {
            let uid = metadata_text(&merged, "uid");
            if !uid.is_empty() {
                // It was meant for an object that is gone.
                return Err(ApiError::precondition_uid(&call.resource, call.name(), uid));
            }
            call.check_same_namespace(&merged)?;
            call.check_same_name(&merged)?;
            match create_applied(call, merged, dry_run).await {
                // Another client was faster, so there is something to merge into.
                Err(error) if error.is_already_exists() => continue,
                answer => return answer,
            }
        };
        check_identity(call, &merged, &current)?;
        if let Some(answer) = update::store_changed(call, &current, &live, merged, dry_run).await? {
            return Ok(answer);
        }
    }
}

/// Returns whether an apply of the status makes an object that is not there.
///
/// Source: the `StatusREST` that does not refuse it, as all others do.
fn creates_by_status(call: &Call) -> bool {
    let resource = &call.resource;
    resource.kind == "ValidatingAdmissionPolicy" && !resource.rules.custom
}

/// Checks that the sender of an apply may also create the object.
///
/// Source: `createAuthorizerAttributes` in `k8s.io/apiserver/pkg/endpoints/handlers/patch.go`.
fn check_create(call: &Call) -> Result<(), ApiError> {
    let attributes = Attributes {
        verb: Verb::Create.as_str().to_owned(),
        subject: Subject::Resource(call.target.clone()),
    };
    call.server.check(&call.user, &attributes)
}

/// Reads the object that is applied, with the members that are in it twice.
pub(in crate::verbs) fn read(
    call: &Call,
    api_version: &str,
    kind: &str,
) -> Result<(Object, Duplicates), ApiError> {
    let refuse = |reason: &str| ApiError::bad_request(format!("error decoding YAML: {reason}"));
    let document = Document::yaml(&call.body)
        .map_err(|error| refuse(&format!("error converting YAML to JSON: {error}")))?;
    let mut applied = match document.value {
        Value::Object(applied) => applied,
        Value::Null => Object::new(),
        other => {
            let error = go_json::type_error(&other, "map[string]interface {}");
            return Err(refuse(&format!(
                "error unmarshaling JSON: while decoding JSON: {error}"
            )));
        }
    };
    check_type(&applied, api_version, kind)?;
    // Of what is applied, Go knows no type yet, and takes a whole number for an integer.
    applied.values_mut().for_each(schema::write_whole_numbers);
    let metadata = applied.get("metadata");
    if metadata.is_some_and(|metadata| metadata.get("managedFields").is_some_and(|f| !f.is_null()))
    {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    Ok((applied, document.duplicates))
}

/// Refuses members that are there twice, or warns of them.
pub(in crate::verbs) fn check_duplicates(
    call: &Call,
    duplicates: &Duplicates,
) -> Result<(), ApiError> {
    match FieldValidation::of(call) {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => duplicates
            .warnings()
            .into_iter()
            .for_each(|text| call.warnings.add(text)),
        FieldValidation::Strict => {
            let problems = duplicates.errors();
            if !problems.is_empty() {
                return Err(ApiError::bad_request(format!(
                    "error strict decoding YAML: error converting YAML to JSON: {}",
                    problems.join(", ")
                )));
            }
        }
    }
    Ok(())
}

fn check_type(applied: &Object, wanted: &str, wanted_kind: &str) -> Result<(), ApiError> {
    let text = |member: &str| {
        applied
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (kind, version) = (text("kind"), text("apiVersion"));
    if version == wanted && kind == wanted_kind {
        return Ok(());
    }
    // Where the version is none, Go reads no kind either.
    let (version, kind) = match version.matches('/').count() {
        0 => (format!("/{version}"), kind),
        1 => (version.to_owned(), kind),
        _ => ("/".to_owned(), ""),
    };
    Err(ApiError::bad_request(format!(
        "invalid object type: {version}, Kind={kind}"
    )))
}

/// Stores an applied object that was not there.
async fn create_applied(
    call: &Call,
    mut merged: Object,
    dry_run: bool,
) -> Result<Answer, ApiError> {
    update::drop_version(&mut merged)?;
    create::store_accounted(call, merged, dry_run).await
}
