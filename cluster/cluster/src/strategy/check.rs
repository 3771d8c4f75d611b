//! Validates an object that is to be stored.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::validation;

use super::part::{Part, Replaced};
use super::{autoscalers, custom, special};
use crate::status::ApiError;

/// Validates the metadata, and the rules of the kind.
///
/// `found` is what is known to be wrong already.
pub(crate) fn check(
    resource: &Resource,
    object: &Object,
    replaced: Option<Replaced<'_>>,
    found: Vec<StatusCause>,
) -> Result<(), ApiError> {
    let old = replaced.map(|replaced| replaced.old);
    let part = replaced.map_or(Part::Main, |replaced| replaced.part);
    let mut causes = found;
    let metadata = validation::validate_metadata(resource, object, old);
    let before = causes.len();
    causes.extend(special::validate(resource, object, old, part));
    let new_form = autoscalers::in_second(resource, object);
    let old_form = old.and_then(|old| autoscalers::in_second(resource, old));
    causes.extend(validation::validate(
        resource,
        new_form.as_ref().unwrap_or(object),
        old_form.as_ref().or(old),
        part,
    ));
    causes.extend(custom::validate(resource, object, replaced, &metadata));
    let has_others = causes.len() > before;
    if !(has_others && replaced.is_none() && checks_metadata_last(resource)) {
        causes.splice(before..before, metadata);
    }
    if causes.is_empty() {
        return Ok(());
    }
    let name = metadata_text(object, "name");
    Err(ApiError::invalid(resource, name, &causes))
}

/// Returns whether the metadata of a new object are checked only if nothing else is wrong.
///
/// Source: the `Validate` of strategies that do not call `ValidateObjectMeta`, after which `BeforeCreate` in
/// `k8s.io/apiserver/pkg/registry/rest` does.
fn checks_metadata_last(resource: &Resource) -> bool {
    let kind = (resource.group.as_str(), resource.kind.as_str());
    !resource.rules.custom && matches!(kind, ("", "Event") | ("policy", "PodDisruptionBudget"))
}
