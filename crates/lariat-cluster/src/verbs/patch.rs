//! PATCH of an object or a subresource.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use super::{Call, admit, update};
use crate::api::reply::Reply;
use crate::api::status::{ApiError, Cause};
use crate::store::{Object, Stored};

/// A patch, read.
#[derive(Debug)]
enum Change {
    Json(Patch),
    Merge(Value),
}

const ACCEPTED: &str = "application/json-patch+json, application/merge-patch+json";

pub(super) fn patch(call: &Call) -> Result<Reply, ApiError> {
    let change = Change::parse(call)?;
    call.query.check_write("PatchOptions", true)?;
    let dry_run = call.query.dry_run("PatchOptions")?;
    let key = call.resource.key(call.namespace(), call.name());
    loop {
        let current = call.server.store.get(call.resource.table, &key);
        let current = current.ok_or_else(|| call.not_found())?;
        let mut object = current.object();
        call.resource.set_type(&mut object);
        let patched = change.apply(object)?;
        check_identity(call, &patched, &current)?;
        if let Some(reply) = update::finish(call, &current, patched, dry_run)? {
            return Ok(reply);
        }
    }
}

impl Change {
    fn parse(call: &Call) -> Result<Self, ApiError> {
        let malformed = |error: serde_json::Error| {
            ApiError::bad_request(format!("error decoding patch: {error}"))
        };
        let content_type = call
            .content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim();
        match content_type {
            "application/json-patch+json" => serde_json::from_slice(&call.body)
                .map(Self::Json)
                .map_err(malformed),
            "application/merge-patch+json" => {
                let patch: Value = serde_json::from_slice(&call.body).map_err(malformed)?;
                if !patch.is_object() {
                    return Err(ApiError::bad_request(
                        "error decoding patch: expected an object",
                    ));
                }
                Ok(Self::Merge(patch))
            }
            _ => Err(ApiError::unsupported_media_type(ACCEPTED)),
        }
    }

    fn apply(&self, object: Object) -> Result<Object, ApiError> {
        let mut document = Value::Object(object);
        match self {
            Self::Merge(patch) => json_patch::merge(&mut document, patch),
            Self::Json(Patch(operations)) => {
                for operation in operations {
                    if !tests_absence(&document, operation) {
                        json_patch::patch(&mut document, std::slice::from_ref(operation))
                            .map_err(|_| ApiError::rejected_patch())?;
                    }
                }
            }
        }
        match document {
            Value::Object(object) => Ok(object),
            _ => Err(ApiError::rejected_patch()),
        }
    }
}

/// Returns whether an operation tests that a member is null, which an absent one passes in Kubernetes.
fn tests_absence(document: &Value, operation: &PatchOperation) -> bool {
    match operation {
        PatchOperation::Test(test) => {
            test.value.is_null() && document.pointer(test.path.as_str()).is_none()
        }
        _ => false,
    }
}

/// Checks that a patch did not change what an object is, and that the version it names is present.
fn check_identity(call: &Call, patched: &Object, current: &Stored) -> Result<(), ApiError> {
    let text = |member| {
        patched
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    if text("kind") != call.resource.kind || text("apiVersion") != call.resource.api_version() {
        return Err(ApiError::bad_request(format!(
            "the patch changes the type of the object to {} {}",
            text("apiVersion"),
            text("kind")
        )));
    }
    if admit::metadata_text(patched, "name") != call.name() {
        return Err(ApiError::bad_request(
            "the name of the object does not match the name on the URL",
        ));
    }
    let uid = admit::metadata_text(patched, "uid");
    if uid != current.uid() {
        let cause = Cause::invalid("metadata.uid", &uid.into(), "field is immutable");
        return Err(ApiError::invalid(&call.resource, call.name(), &[cause]));
    }
    match admit::metadata_text(patched, "resourceVersion") {
        "" => Ok(()),
        version if version == current.revision().to_string() => Ok(()),
        _ => Err(ApiError::conflict(&call.resource, call.name())),
    }
}
