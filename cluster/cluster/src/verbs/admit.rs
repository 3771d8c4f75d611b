//! Making an object ready to be created.

use lariat_apimachinery::defaults;
use lariat_apimachinery::kinds::{Generation, Resource};
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use serde_json::{Value, json};

use super::creation::Creation;
use super::escalation;
use crate::access::User;
use crate::status::ApiError;
use crate::strategy::{self, normalize_metadata};

/// Prepares an object for its creation: name, metadata, defaults, validation.
pub(super) fn create(
    creation: &Creation<'_>,
    mut object: Object,
    dry_run: bool,
) -> Result<Object, ApiError> {
    let resource = creation.resource;
    place_new(creation, &mut object)?;
    let metadata = metadata_mut(&mut object);
    let sent_generation = metadata.remove("generation");
    normalize_metadata(metadata);
    metadata.insert("uid".into(), creation.server.random.uid().into());
    let now = creation.server.clock.now();
    metadata.insert("creationTimestamp".into(), now.clone().into());
    // Where the server counts no changes, Go keeps what was sent.
    let generation = match resource.rules.generation {
        Generation::None | Generation::ContentChanged => sent_generation,
        _ => Some(json!(1)),
    };
    if let Some(generation) = generation.filter(|count| *count != json!(0)) {
        metadata.insert("generation".into(), generation);
    }
    if resource.rules.status && !keeps_status(resource) {
        reset_status(resource, &mut object);
    }
    if !object.get("status").is_some_and(Value::is_object)
        && let Some(status) = defaults::initial_status(resource, &now)
    {
        object.insert("status".into(), status);
    }
    name_requester(creation, &mut object);
    strategy::admit_create(creation.server, resource, &mut object)?;
    // The storages of roles and bindings ask before they hand the object on, which is then named and validated.
    if let Some(user) = creation.user {
        escalation::check(creation.server, resource, user, None, &object)?;
    }
    // As BeforeCreate, so after mutating admission, whose refusals show the prefix.
    name(creation, metadata_mut(&mut object));
    defaults::drop_disabled(resource, &mut object);
    strategy::prepare_create(creation.server, resource, &mut object, dry_run)?;
    strategy::complete(resource, &mut object);
    let found = strategy::refuse_new(creation.server, resource, &object);
    strategy::check(resource, &object, None, found)?;
    strategy::store(resource, &mut object);
    Ok(object)
}

/// Drops the status of a new object, except for the QoS class of a Pod.
fn reset_status(resource: &Resource, object: &mut Object) {
    let status = object.remove("status");
    let class = status.and_then(|mut status| status.get_mut("qosClass").map(Value::take));
    if let Some(class) = class.filter(|_| resource.kind == "Pod" && !resource.rules.custom) {
        object.insert("status".into(), json!({"qosClass": class}));
    }
}

/// Sets the namespace of a new object, and drops the uid and the time of creation.
///
/// A deletion timestamp is kept: POST has dropped it, and a PUT or an apply that creates keeps it, as in Go.
pub(super) fn place_new(creation: &Creation<'_>, object: &mut Object) -> Result<(), ApiError> {
    strategy::check_shape(creation.resource, object)?;
    place(creation, object)?;
    let metadata = metadata_mut(object);
    for member in ["uid", "creationTimestamp"] {
        metadata.remove(member);
    }
    Ok(())
}

/// Writes into a request for a certificate who asks for it.
fn name_requester(creation: &Creation<'_>, object: &mut Object) {
    let is_request = creation.resource.kind == "CertificateSigningRequest";
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    let Some(spec) = spec.filter(|_| is_request && !creation.resource.rules.custom) else {
        return;
    };
    // As csrStrategy.PrepareForCreate: what a client says of itself does not count.
    for member in ["username", "uid", "groups", "extra"] {
        spec.remove(member);
    }
    if let Some(Value::Object(info)) = creation.user.map(User::info) {
        spec.extend(info);
    }
}

/// Returns whether a new object keeps its status; only one kind does.
///
/// A kubelet registers its node with what the node has.
fn keeps_status(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.kind == "Node"
}

/// Sets the namespace of the path on an object.
fn place(creation: &Creation<'_>, object: &mut Object) -> Result<(), ApiError> {
    let given = metadata_text(object, "namespace").to_owned();
    let metadata = metadata_mut(object);
    let Some(namespace) = creation.namespace.filter(|_| creation.resource.namespaced) else {
        // As rest.EnsureObjectNamespaceMatchesRequestNamespace: dropped, not refused.
        metadata.remove("namespace");
        return Ok(());
    };
    if !given.is_empty() && given != namespace {
        return Err(ApiError::namespace_mismatch());
    }
    metadata.insert("namespace".into(), namespace.into());
    Ok(())
}

/// Generates a name for an object that asks for one.
fn name(creation: &Creation<'_>, metadata: &mut Object) {
    let text = |member: &str| {
        metadata
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    if !text("name").is_empty() {
        return;
    }
    let base = text("generateName");
    let is_kind = |kind: &str| creation.resource.kind == kind && !creation.resource.rules.custom;
    // limitrangeStrategy.PrepareForCreate names it with a UUID.
    let is_limit_range = is_kind("LimitRange");
    // Without both it is refused with whatever else is wrong, unless its kind does not mind.
    let name = match base {
        "" if is_limit_range => creation.server.random.uid(),
        "" => return,
        // As noopNameGenerator: the name of an address must be that address.
        base if is_kind("IPAddress") => base.to_owned(),
        base => creation.server.random.generate(base),
    };
    metadata.insert("name".into(), name.into());
}
