//! Patches that change an object.

use lariat_apimachinery::go_json;
use lariat_apimachinery::object::Object;
use lariat_apimachinery::patch::{Patch, PatchError};
use lariat_apimachinery::schema::{self, TypeRef};
use serde_json::Value;

use super::apply;
use super::identity::{check_identity, check_type};
use crate::status::ApiError;
use crate::strategy;
use crate::verbs::answer::Answer;
use crate::verbs::call::{Call, STRATEGIC};
use crate::verbs::normalize::{self, Origin};
use crate::verbs::update;
use crate::wire::document::{Document, Duplicates};
use crate::wire::write_options::WriteOptions;

/// A patch as it was sent.
#[derive(Debug)]
pub(crate) struct Change {
    patch: Patch,
    /// The members that are in it twice.
    pub(in crate::verbs) duplicates: Duplicates,
}

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// The place of a number in Go's type of an operation of a JSON patch.
const OPERATION_VALUE: &str = "Go struct field jsonPatchOp.value";

pub(crate) async fn patch(call: &Call) -> Result<Answer, ApiError> {
    call.check_patch_type()?;
    call.check_named()?;
    let applies = call.media_type() == APPLY;
    let dry_run = call.query.check_write(WriteOptions::of_patch(applies))?;
    if applies {
        return apply::apply(call, dry_run).await;
    }
    let key = call.resource.key(call.namespace(), call.name());
    // Go reads the patch only when it has the object.
    if call.server.store.get(call.resource.table, &key).is_none() {
        return Err(call.not_found());
    }
    let change = Change::parse(call)?;
    // A patch without a version never conflicts: a lost race means to patch the newer state.
    loop {
        let found = call.server.store.get(call.resource.table, &key);
        let current = found.ok_or_else(|| call.not_found())?;
        let object = call.present(&current).await?;
        let mut patched = change.apply(call, object)?;
        if let Some(reason) = strategy::shape_error(&call.resource, &patched) {
            if call.is_strategic() {
                // Go has other words where it converts without JSON.
                normalize::normalize(call, &mut patched, Origin::Patch, &change.duplicates)?;
            }
            return Err(normalize::refuse(call, Origin::Patch, &reason));
        }
        check_type(call, &mut patched)?;
        normalize::normalize(call, &mut patched, Origin::Patch, &change.duplicates)?;
        check_identity(call, &patched, &current)?;
        if let Some(answer) = update::finish(call, &current, patched, dry_run).await? {
            return Ok(answer);
        }
    }
}

impl Change {
    pub(crate) fn parse(call: &Call) -> Result<Self, ApiError> {
        let unsupported = || ApiError::unsupported_media_type(&call.accepted_patches());
        if call.is_strategic_on_custom() {
            return Err(unsupported());
        }
        Self::read(call.media_type(), &call.body)?.ok_or_else(unsupported)
    }

    /// Reads a patch; `None` if there is no such type of patch.
    fn read(media_type: &str, body: &[u8]) -> Result<Option<Self>, ApiError> {
        let malformed = |error| ApiError::from(PatchError::Unreadable(error));
        match media_type {
            JSON => {
                let document = Document::json(body)
                    .map_err(|error| malformed(error.replace("Go value", OPERATION_VALUE)))?;
                let (patch, unknown) = Patch::of_json(document.value)?;
                let problems = if unknown.is_empty() && document.duplicates.is_empty() {
                    Vec::new()
                } else {
                    schema::strict_errors_of_patch(body)
                };
                let problems = problems.into_iter();
                let worded = problems.map(|problem| format!("json patch {problem}"));
                Ok(Some(Self {
                    patch,
                    duplicates: Duplicates::Worded(worded.collect()),
                }))
            }
            MERGE => {
                let document = Document::json(body).map_err(malformed)?;
                let patch = match document.value {
                    Value::Null => return Err(ApiError::bad_request("Invalid JSON Patch")),
                    value => members_of(value).map_err(malformed)?,
                };
                Ok(Some(Self {
                    patch: Patch::Merge(Value::Object(patch)),
                    duplicates: document.duplicates,
                }))
            }
            STRATEGIC => {
                let document = Document::json(body).map_err(ApiError::bad_request)?;
                let patch = match document.value {
                    // It changes nothing.
                    Value::Null => Object::new(),
                    value => members_of(value).map_err(ApiError::bad_request)?,
                };
                Ok(Some(Self {
                    patch: Patch::Strategic(patch),
                    duplicates: document.duplicates,
                }))
            }
            _ => Ok(None),
        }
    }

    pub(crate) fn apply(&self, call: &Call, object: Object) -> Result<Object, ApiError> {
        self.apply_as(call.resource.types().root(), object)
    }

    /// Changes an object of some type.
    pub(crate) fn apply_as(&self, typed: TypeRef<'_>, object: Object) -> Result<Object, ApiError> {
        Ok(self.patch.apply(typed, object)?)
    }
}

fn members_of(patch: Value) -> Result<Object, String> {
    match patch {
        Value::Object(members) => Ok(members),
        other => Err(go_json::type_error(&other, "map[string]interface {}")),
    }
}

/// Patches an object without a request; `None` for an unknown type of patch.
#[cfg(feature = "fuzzing")]
pub(crate) fn patched(
    media_type: &str,
    body: &[u8],
    typed: TypeRef<'_>,
    object: Object,
) -> Result<Option<Object>, ApiError> {
    let change = Change::read(media_type, body)?;
    change
        .map(|change| change.apply_as(typed, object))
        .transpose()
}

/// Returns whether a media type is that of a patch.
pub(in crate::verbs) fn is_patch(media_type: &str) -> bool {
    matches!(media_type, JSON | MERGE | STRATEGIC | APPLY)
}

impl Call {
    /// Refuses an unsupported patch type, before anything else is checked.
    fn check_patch_type(&self) -> Result<(), ApiError> {
        let is_known = is_patch(self.media_type());
        if is_known && !self.is_strategic_on_custom() {
            return Ok(());
        }
        Err(if self.resource.rules.custom {
            ApiError::unsupported_media_type(&self.accepted_patches())
        } else {
            ApiError::unsupported_patch_type()
        })
    }

    /// Returns whether a patch gets as far as its resource: for an unknown type of patch a built-in kind has no route.
    pub(crate) fn has_route_of_patches(&self) -> bool {
        self.resource.rules.custom || is_patch(self.media_type())
    }

    fn is_strategic_on_custom(&self) -> bool {
        self.resource.rules.custom && self.is_strategic()
    }

    fn accepted_patches(&self) -> String {
        let mut accepted = vec![JSON, MERGE, APPLY];
        if !self.resource.rules.custom {
            accepted.insert(2, STRATEGIC);
        }
        accepted.join(", ")
    }
}
