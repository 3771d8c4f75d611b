//! What the server does to an object before it stores it, whatever its kind.

use lariat_core::Labels;
use serde_json::{Map, Value, json};

use super::{
    Call, annotations, builtin, custom, finalizer_rules, owners, shape, strategy, subresources,
};
use crate::api::status::{ApiError, Cause};
use crate::defaults;
use crate::kinds::{Generation, Resource};
use crate::managed;
use crate::names;
use crate::store::Object;

/// Metadata only the server writes.
const SERVER_METADATA: [&str; 5] = [
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Collections that are dropped when empty.
const COLLECTIONS: [&str; 4] = ["labels", "annotations", "ownerReferences", "finalizers"];

/// Returns the metadata of an object, which is made if it is missing.
pub(crate) fn metadata_mut(object: &mut Object) -> &mut Object {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata
        .as_object_mut()
        .expect("it was just made an object")
}

/// Returns a text in an object's metadata, empty if there is none.
pub(crate) fn metadata_text<'a>(object: &'a Object, member: &str) -> &'a str {
    let text = object
        .get("metadata")
        .and_then(|metadata| metadata.get(member)?.as_str());
    text.unwrap_or_default()
}

/// Returns the finalizers of an object.
pub(crate) fn finalizers(object: &Object) -> Vec<&str> {
    let finalizers = object
        .get("metadata")
        .and_then(|metadata| metadata.get("finalizers"));
    finalizers
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Makes an object ready to be created: names it, stamps it, defaults it, checks it.
pub(super) fn create(call: &Call, mut object: Object) -> Result<Object, ApiError> {
    let resource = &call.resource;
    shape::check(resource, &object)?;
    if !metadata_text(&object, "resourceVersion").is_empty() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(ApiError::internal(message));
    }
    place(call, &mut object)?;
    let metadata = metadata_mut(&mut object);
    for member in SERVER_METADATA {
        metadata.remove(member);
    }
    tidy(metadata);
    name(call, metadata)?;
    metadata.insert("uid".into(), call.server.names.uid().into());
    metadata.insert("creationTimestamp".into(), call.server.clock.now().into());
    if resource.rules.generation != Generation::None {
        metadata.insert("generation".into(), json!(1));
    }
    if resource.rules.status {
        object.remove("status");
    }
    if let Some(status) = defaults::initial_status(resource) {
        object.insert("status".into(), status);
    }
    strategy::prepare_create(resource, &mut object);
    builtin::prepare_create(&call.server, resource, &mut object)
        .map_err(|cause| ApiError::invalid(resource, metadata_text(&object, "name"), &[cause]))?;
    custom::complete(resource, &mut object);
    check(resource, &object, None)?;
    Ok(object)
}

/// Puts an object into the namespace of the path.
fn place(call: &Call, object: &mut Object) -> Result<(), ApiError> {
    let given = metadata_text(object, "namespace").to_owned();
    let metadata = metadata_mut(object);
    let Some(namespace) = call.namespace().filter(|_| call.resource.namespaced) else {
        metadata.remove("namespace");
        return Ok(());
    };
    if !given.is_empty() && given != namespace {
        return Err(ApiError::namespace_mismatch());
    }
    metadata.insert("namespace".into(), namespace.into());
    Ok(())
}

/// Generates a name where one is asked for.
fn name(call: &Call, metadata: &mut Object) -> Result<(), ApiError> {
    let text = |member: &str| {
        metadata
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    if !text("name").is_empty() {
        return Ok(());
    }
    let base = text("generateName");
    if base.is_empty() {
        let cause = Cause::required("metadata.name", "name or generateName is required");
        return Err(ApiError::invalid(&call.resource, "", &[cause]));
    }
    let name = call.server.names.generate(base);
    metadata.insert("name".into(), name.into());
    Ok(())
}

/// Drops what the server does not keep.
fn tidy(metadata: &mut Object) {
    for member in ["resourceVersion", "selfLink"] {
        metadata.remove(member);
    }
    for member in COLLECTIONS {
        let is_empty = metadata.get(member).is_some_and(|value| match value {
            Value::Null => true,
            Value::Array(array) => array.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        });
        if is_empty {
            metadata.remove(member);
        }
    }
    metadata.retain(|_, value| !value.is_null());
}

/// Checks name and labels, and what the kind's own rules say.
fn check(
    resource: &Resource,
    object: &Object,
    replaced: Option<(Part, &Object)>,
) -> Result<(), ApiError> {
    let mut causes = Vec::new();
    let name = metadata_text(object, "name");
    if let Err(rule) = names::check(name, resource.rules.names) {
        causes.push(Cause::invalid("metadata.name", &name.into(), rule));
    }
    let labels = object
        .get("metadata")
        .and_then(|metadata| metadata.get("labels"));
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        let invalid = |text: &str, rule| Cause::invalid("metadata.labels", &text.into(), rule);
        causes.extend(Labels::check_key(key).err().map(|rule| invalid(key, rule)));
        causes.extend(
            Labels::check_value(text)
                .err()
                .map(|rule| invalid(text, rule)),
        );
    }
    causes.extend(annotations::validate(object));
    causes.extend(owners::validate(object));
    causes.extend(finalizer_rules::validate(resource, object));
    let old = replaced.map(|(_, old)| old);
    causes.extend(strategy::validate(resource, object, old));
    causes.extend(builtin::validate(resource, object, replaced));
    causes.extend(custom::validate(resource, object, replaced));
    if causes.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(resource, name, &causes))
}

/// What is to become of an object that a client wants to replace.
#[derive(Debug)]
pub(crate) enum Replacement {
    /// Nothing changed; the present state stays under its version.
    Unchanged,
    /// The new state.
    Changed(Object),
    /// The object was only waiting for this change to be deleted; the new state is never stored.
    Deleted(Object),
}

/// Which part of an object a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status, where that is a part of its own.
    Main,
    Status,
    /// The finalizers in a namespace's spec.
    Finalize,
    /// The ephemeral containers of a Pod.
    Ephemeral,
    /// The resources of a Pod's containers.
    Resize,
    /// The conditions of a request for a certificate.
    Approval,
}

impl Part {
    pub(super) fn of(call: &Call) -> Self {
        match call.target.subresource.as_deref() {
            Some("status") => Self::Status,
            Some("finalize") => Self::Finalize,
            Some("ephemeralcontainers") => Self::Ephemeral,
            Some("resize") => Self::Resize,
            Some("approval") => Self::Approval,
            _ => Self::Main,
        }
    }
}

/// Makes the new state of an object out of what the client sent and what is stored.
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
    strategy::prepare_update(resource, part, old, &mut new);
    custom::complete(resource, &mut new);
    if !managed::differ(old, &new) {
        return Ok(Replacement::Unchanged);
    }
    check_finalizers(resource, old, &new)?;
    if raises_generation(resource.rules.generation, part, old, &new) {
        raise_generation(&mut new);
    }
    strategy::check_update(resource, old, &new)?;
    check(resource, &new, Some((part, old)))?;
    if strategy::may_go(resource, &new) {
        return Ok(Replacement::Deleted(new));
    }
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
                plural if keeps_metadata(&resource.group, plural) => {
                    for member in COLLECTIONS {
                        copy_metadata(old, &mut sent, member);
                    }
                }
                _ => {}
            }
            sent
        }
        Part::Ephemeral | Part::Resize | Part::Approval => {
            let mut new = subresources::restrict(part, old, &sent);
            copy_metadata(&sent, &mut new, "managedFields");
            new
        }
        Part::Finalize => {
            let mut new = old.clone();
            copy_member(&sent, &mut new, "spec");
            copy_metadata(&sent, &mut new, "managedFields");
            new
        }
    }
}

/// Returns whether a write of the status changes no metadata.
///
/// Source: the strategies that call `ResetObjectMetaForStatus`.
fn keeps_metadata(group: &str, plural: &str) -> bool {
    matches!(
        (group, plural),
        ("storage.k8s.io", "volumeattachments")
            | ("resource.k8s.io", "resourceclaims")
            | (
                "admissionregistration.k8s.io",
                "validatingadmissionpolicies"
            )
    )
}

fn copy_metadata(from: &Object, to: &mut Object, member: &str) {
    let value = from
        .get("metadata")
        .and_then(|metadata| metadata.get(member));
    let metadata = metadata_mut(to);
    match value {
        Some(value) => metadata.insert(member.to_owned(), value.clone()),
        None => metadata.remove(member),
    };
}

fn copy_member(from: &Object, to: &mut Object, member: &str) {
    match from.get(member) {
        Some(value) => to.insert(member.to_owned(), value.clone()),
        None => to.remove(member),
    };
}

/// Restores the metadata a client cannot change.
fn keep_metadata(old: &Object, metadata: &mut Object) {
    let empty = Map::new();
    let kept = old
        .get("metadata")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    for member in SERVER_METADATA
        .iter()
        .chain(&["name", "namespace", "generateName"])
    {
        copy_member(kept, metadata, member);
    }
    tidy(metadata);
}

/// Refuses a time of deletion that a client made up.
fn check_deletion_time(resource: &Resource, old: &Object, sent: &Object) -> Result<(), ApiError> {
    let field = "deletionTimestamp";
    let sent_time = metadata_text(sent, field);
    if sent_time.is_empty() || sent_time == metadata_text(old, field) {
        return Ok(());
    }
    let path = "metadata.deletionTimestamp";
    let cause = Cause::invalid(path, &sent_time.into(), "field is immutable");
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
    let known = finalizers(old);
    let late: Vec<&str> = finalizers(new)
        .into_iter()
        .filter(|f| !known.contains(f))
        .collect();
    if late.is_empty() {
        return Ok(());
    }
    let message = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers {late:?}"
    );
    let cause = Cause::forbidden("metadata.finalizers", &message);
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
        Generation::None => false,
        Generation::ContentAndAnnotations
            if part != Part::Status && annotations(old) != annotations(new) =>
        {
            true
        }
        _ => managed::differ_outside(old, new, outside),
    }
}

/// Counts one more change.
pub(super) fn raise_generation(object: &mut Object) {
    let metadata = metadata_mut(object);
    let generation = metadata
        .get("generation")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    metadata.insert("generation".into(), json!(generation + 1));
}
