//! The new state of an object that a client replaces.

use std::collections::{BTreeSet, HashSet};

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::defaults;
use lariat_apimachinery::kinds::{Generation, Resource};
use lariat_apimachinery::managed;
use lariat_apimachinery::object::{Object, finalizers, metadata_mut, metadata_text};
use lariat_apimachinery::validation::are_equal;
use serde_json::Value;

use super::check::check;
use super::metadata::{COLLECTIONS, copy_member, copy_metadata, keep_metadata, raise_generation};
use super::part::{Part, Replaced};
use super::{custom, restricted, shape, special};
use crate::status::ApiError;

/// The result of replacing an object.
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

/// Makes the new state of an object from the sent and the stored one.
pub(crate) fn replacement(
    resource: &Resource,
    part: Part,
    old: &Object,
    sent: Object,
) -> Result<Replacement, ApiError> {
    replacement_as_sent(resource, part, false, old, sent, Vec::new())
}

/// Makes the new state of an object from the one a client sent and the stored one.
///
/// `has_empty` is whether lists or maps without items were dropped when it was read, `found` what is known to be wrong
/// already.
pub(crate) fn replacement_as_sent(
    resource: &Resource,
    part: Part,
    has_empty: bool,
    old: &Object,
    sent: Object,
    mut found: Vec<StatusCause>,
) -> Result<Replacement, ApiError> {
    shape::check(resource, &sent)?;
    // Before anything is restored: what a client made up is refused, not replaced without a word.
    found.extend(changes_of_fixed(resource, part, old, &sent));
    let mut new = restrict(resource, part, old, sent);
    // endpointSliceStrategy.PrepareForUpdate compares before it drops the topology, which no stored slice has.
    let raises_as_sent =
        resource.rules.generation == Generation::ContentAndLabels && has_topology(&new);
    defaults::drop_disabled(resource, &mut new);
    keep_metadata(old, metadata_mut(&mut new));
    special::prepare_update(resource, part, old, &mut new);
    custom::complete(resource, &mut new);
    let raises = raises_as_sent || raises_generation(resource, part, has_empty, old, &new);
    if found.is_empty() && !raises && !managed::differ(old, &new) {
        // `BeforeUpdate` comes first: some Pods may not be resized at all, and a schema may have changed.
        if resource.rules.custom || matches!(part, Part::Ephemeral | Part::Resize) {
            check(resource, &new, Some(Replaced { part, old }), found)?;
        }
        // As GuaranteedUpdate in the storage of etcd: no event, and no new version.
        return Ok(if special::may_go(resource, &new) {
            Replacement::Deleted(new)
        } else {
            Replacement::Unchanged
        });
    }
    found.extend(late_finalizers(old, &new));
    if raises {
        raise_generation(&mut new);
    }
    check(resource, &new, Some(Replaced { part, old }), found)?;
    if special::may_go(resource, &new) {
        return Ok(Replacement::Deleted(new));
    }
    custom::store(resource, &mut new);
    Ok(Replacement::Changed(new))
}

/// Copies from `sent` only the fields that a write of the part may change.
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
                // As deploymentStatusStrategy.
                "deployments" => copy_metadata(old, &mut sent, "labels"),
                // As podStatusStrategy: old kubelets damage them.
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
                | (
                    "admissionregistration.k8s.io",
                    "validatingadmissionpolicies"
                )
        )
}

/// Finds metadata that a client made up.
///
/// Source: `BeforeUpdate` in `k8s.io/apiserver/pkg/registry/rest`, `ValidateObjectMetaAccessorUpdate` in
/// `k8s.io/apimachinery/pkg/api/validation`.
fn changes_of_fixed(
    resource: &Resource,
    part: Part,
    old: &Object,
    sent: &Object,
) -> Vec<StatusCause> {
    let member = |object: &Object, name: &str| object.get("metadata")?.get(name).cloned();
    let is_sent = |value: &Value| !value.is_null() && *value != "";
    let members: &[&str] = match part {
        // The new object starts from the old metadata, and takes no other metadata from the client.
        Part::Status if resource.rules.custom => &[],
        Part::Ephemeral | Part::Resize => &["uid", "deletionGracePeriodSeconds"],
        Part::Status if keeps_metadata(resource) || is_pod(resource) => {
            &["uid", "deletionGracePeriodSeconds"]
        }
        // Of an object that is being deleted the time is kept, whatever is sent.
        _ if !metadata_text(old, "deletionTimestamp").is_empty() => {
            &["uid", "deletionGracePeriodSeconds"]
        }
        _ => &["uid", "deletionTimestamp", "deletionGracePeriodSeconds"],
    };
    let changed = members.iter().filter_map(|name| {
        let sent = member(sent, name).filter(is_sent)?;
        let differs = member(old, name).as_ref() != Some(&sent);
        differs.then(|| {
            let path = format!("metadata.{name}");
            StatusCause::invalid(&path, &sent, "field is immutable")
        })
    });
    changed.collect()
}

fn is_pod(resource: &Resource) -> bool {
    resource.kind == "Pod" && !resource.rules.custom
}

/// Finds finalizers that come too late.
fn late_finalizers(old: &Object, new: &Object) -> Option<StatusCause> {
    if metadata_text(old, "deletionTimestamp").is_empty() {
        return None;
    }
    let known: HashSet<&str> = finalizers(old).into_iter().collect();
    let names = finalizers(new).into_iter();
    // Sorted, and each once.
    let late: BTreeSet<&str> = names.filter(|name| !known.contains(name)).collect();
    let quoted: Vec<String> = late.iter().map(|name| format!("{name:?}")).collect();
    let message = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers \
         []string{{{}}}",
        quoted.join(", ")
    );
    (!late.is_empty()).then(|| StatusCause::forbidden("metadata.finalizers", &message))
}

/// Returns whether an endpoint of a slice has the topology that is no longer kept.
fn has_topology(slice: &Object) -> bool {
    let endpoints = slice.get("endpoints").and_then(Value::as_array);
    let mut topologies = endpoints
        .into_iter()
        .flatten()
        .filter_map(|endpoint| endpoint["deprecatedTopology"].as_object());
    topologies.any(|topology| !topology.is_empty())
}

fn raises_generation(
    resource: &Resource,
    part: Part,
    has_empty: bool,
    old: &Object,
    new: &Object,
) -> bool {
    let rule = resource.rules.generation;
    let differs_in = |member: &str| {
        let of = |object| Object::get(object, "metadata").and_then(|metadata| metadata.get(member));
        of(old) != of(new)
    };
    let outside: &[&str] = match rule {
        Generation::ContentAndStatus => &["metadata"],
        _ => &["metadata", "status"],
    };
    match rule {
        Generation::None | Generation::Created => false,
        Generation::ContentAsSent if has_empty => true,
        // The annotations of a Deployment are a part of what its controller has to do: they go to the ReplicaSets.
        Generation::ContentAndAnnotations if part != Part::Status && differs_in("annotations") => {
            true
        }
        Generation::ContentAndLabels if differs_in("labels") => true,
        _ if resource.rules.custom => managed::differ_outside(old, new, outside),
        _ => content_differs(old, new, outside),
    }
}

/// Returns whether objects differ in more than the form of amounts.
fn content_differs(old: &Object, new: &Object, outside: &[&str]) -> bool {
    let counts = |member: &str| !outside.contains(&member);
    let is_kept = |member: &str, value| old.get(member).is_some_and(|was| are_equal(was, value));
    let mut lost = old.keys().filter(|member| !new.contains_key(*member));
    lost.any(|member| counts(member))
        || new
            .iter()
            .any(|(member, value)| counts(member) && !is_kept(member, value))
}
