//! The new state of an object that a client replaces.

use std::collections::HashSet;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::{Generation, Resource};
use lariat_apimachinery::managed;
use lariat_apimachinery::object::{Object, finalizers, metadata_mut, metadata_text};
use serde_json::Value;

use super::check::check;
use super::metadata::{COLLECTIONS, copy_member, copy_metadata, keep_metadata, raise_generation};
use super::part::{Part, Replaced};
use super::{custom, restricted, shape, special};
use crate::status::ApiError;

/// What is to become of an object that a client wants to replace.
#[derive(Debug)]
pub(crate) enum Replacement {
    /// Nothing changed; the present state stays under its version.
    Unchanged,
    /// The new state.
    Changed(Object),
    /// A deletion waited only for this change.
    ///
    /// The new state is never stored.
    Deleted(Object),
}

/// Makes the new state of an object from what was sent and what is stored.
pub(crate) fn replacement(
    resource: &Resource,
    part: Part,
    old: &Object,
    sent: Object,
) -> Result<Replacement, ApiError> {
    shape::check(resource, &sent)?;
    check_deletion_time(resource, old, &sent)?;
    let mut new = restrict(resource, part, old, sent);
    keep_metadata(old, metadata_mut(&mut new));
    special::prepare_update(resource, part, old, &mut new);
    custom::complete(resource, &mut new);
    if !managed::differ(old, &new) {
        return Ok(Replacement::Unchanged);
    }
    check_finalizers(resource, old, &new)?;
    if raises_generation(resource.rules.generation, part, old, &new) {
        raise_generation(&mut new);
    }
    special::check_update(resource, old, &new)?;
    check(resource, &new, Some(Replaced { part, old }))?;
    if special::may_go(resource, &new) {
        return Ok(Replacement::Deleted(new));
    }
    custom::store(resource, &mut new);
    Ok(Replacement::Changed(new))
}

/// Takes from `sent` only what the written part may change.
fn restrict(resource: &Resource, part: Part, old: &Object, mut sent: Object) -> Object {
    match part {
        Part::Main if resource.rules.status => {
            copy_member(old, &mut sent, "status");
            sent
        }
        Part::Main => sent,
        Part::Status if resource.rules.custom => {
            let mut new = old.clone();
            copy_member(&sent, &mut new, "status");
            copy_metadata(&sent, &mut new, "managedFields");
            new
        }
        // Metadata goes along, which the API server allows for most built-in kinds.
        Part::Status => {
            for (member, value) in old {
                if !matches!(&**member, "metadata" | "status") {
                    sent.insert(member.clone(), value.clone());
                }
            }
            sent.retain(|member, _| old.contains_key(member) || member == "status");
            match &*resource.plural {
                "deployments" => copy_metadata(old, &mut sent, "labels"),
                "pods" => copy_metadata(old, &mut sent, "ownerReferences"),
                _ if keeps_metadata(resource) => {
                    for member in COLLECTIONS {
                        copy_metadata(old, &mut sent, member);
                    }
                }
                _ => {}
            }
            sent
        }
        Part::Ephemeral | Part::Resize | Part::Approval => {
            let mut new = restricted::restrict(part, old, &sent);
            copy_metadata(&sent, &mut new, "managedFields");
            new
        }
        Part::Finalize => {
            copy_member(old, &mut sent, "status");
            sent
        }
    }
}

/// Returns whether a write of the status changes no metadata.
///
/// Source: the strategies that call `ResetObjectMetaForStatus`, or copy the old metadata.
pub(crate) fn keeps_metadata(resource: &Resource) -> bool {
    resource.rules.custom
        || matches!(
            (resource.group.as_str(), resource.plural.as_str()),
            ("storage.k8s.io", "volumeattachments")
                | ("resource.k8s.io", "resourceclaims" | "devicetaintrules")
                | ("networking.k8s.io", "servicecidrs")
                | ("flowcontrol.apiserver.k8s.io", _)
                | ("apiregistration.k8s.io", "apiservices")
                | ("apiextensions.k8s.io", "customresourcedefinitions")
                | (
                    "admissionregistration.k8s.io",
                    "validatingadmissionpolicies"
                )
        )
}

/// Refuses a time of deletion that a client made up.
fn check_deletion_time(resource: &Resource, old: &Object, sent: &Object) -> Result<(), ApiError> {
    let field = "deletionTimestamp";
    let sent_time = metadata_text(sent, field);
    if sent_time.is_empty() || sent_time == metadata_text(old, field) {
        return Ok(());
    }
    let path = "metadata.deletionTimestamp";
    let cause = StatusCause::invalid(path, &sent_time.into(), "field is immutable");
    Err(ApiError::invalid(
        resource,
        metadata_text(old, "name"),
        &[cause],
    ))
}

/// Refuses finalizers that come too late.
fn check_finalizers(resource: &Resource, old: &Object, new: &Object) -> Result<(), ApiError> {
    if metadata_text(old, "deletionTimestamp").is_empty() {
        return Ok(());
    }
    let known: HashSet<&str> = finalizers(old).into_iter().collect();
    let late: Vec<&str> = finalizers(new)
        .into_iter()
        .filter(|f| !known.contains(f))
        .collect();
    if late.is_empty() {
        return Ok(());
    }
    let late: Vec<String> = late.iter().map(|name| format!("{name:?}")).collect();
    let message = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers \
         []string{{{}}}",
        late.join(", ")
    );
    let cause = StatusCause::forbidden("metadata.finalizers", &message);
    Err(ApiError::invalid(
        resource,
        metadata_text(new, "name"),
        &[cause],
    ))
}

fn raises_generation(rule: Generation, part: Part, old: &Object, new: &Object) -> bool {
    fn annotations(object: &Object) -> Option<&Value> {
        object.get("metadata")?.get("annotations")
    }
    let outside: &[&str] = match rule {
        Generation::ContentAndStatus => &["metadata"],
        _ => &["metadata", "status"],
    };
    match rule {
        Generation::None | Generation::Created => false,
        Generation::ContentAndAnnotations
            if part != Part::Status && annotations(old) != annotations(new) =>
        {
            true
        }
        _ => managed::differ_outside(old, new, outside),
    }
}
