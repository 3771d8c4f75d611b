//! Prepares objects of built-in kinds for storage.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;

use super::builtin::{certificates, devices, profiles, volumes};
use super::{builtin, special};
use crate::server::Server;
use crate::status::ApiError;

/// Prepares a new object.
///
/// A dry run does not keep it.
///
/// # Errors
///
/// Something it asks for cannot be had, such as an address that is taken.
pub(crate) fn prepare_create(
    server: &Server,
    resource: &Resource,
    object: &mut Object,
    dry_run: bool,
) -> Result<(), ApiError> {
    special::prepare_create(resource, object);
    builtin::prepare_create(server, resource, object, dry_run)
}

/// Returns the warnings about profiles in the annotations of a new Pod.
pub(crate) fn profile_warnings(resource: &Resource, object: &Object) -> Vec<String> {
    let is_pod = resource.kind == "Pod" && !resource.rules.custom;
    // The object itself is changed when it is prepared.
    if is_pod && profiles::has_some(object) {
        profiles::sync(&mut object.clone())
    } else {
        Vec::new()
    }
}

/// Prepares an object that was changed.
///
/// # Errors
///
/// As for [`prepare_create`].
pub(crate) fn allocate(
    server: &Server,
    resource: &Resource,
    old: &Object,
    new: &mut Object,
    dry_run: bool,
) -> Result<(), ApiError> {
    builtin::prepare_update(server, resource, (old, new), dry_run)
}

/// Returns the causes for which the namespace of a new object does not admit it.
pub(crate) fn refuse_new(
    server: &Server,
    resource: &Resource,
    object: &Object,
) -> Vec<StatusCause> {
    let kind = (resource.group.as_str(), resource.plural.as_str());
    let is_claim = matches!(
        kind,
        (
            "resource.k8s.io",
            "resourceclaims" | "resourceclaimtemplates"
        )
    );
    let found = is_claim.then(|| devices::check_new(server, resource, object));
    found.flatten().into_iter().collect()
}

/// Returns the causes for which the namespace of an object does not admit its status.
pub(crate) fn refuse_status(
    server: &Server,
    resource: &Resource,
    old: &Object,
    new: &Object,
) -> Vec<StatusCause> {
    let kind = (resource.group.as_str(), resource.plural.as_str());
    let is_claim = kind == ("resource.k8s.io", "resourceclaims");
    let found = is_claim.then(|| devices::check_status(server, old, new));
    found.flatten().into_iter().collect()
}

/// Sets the times of a status that was written.
pub(crate) fn stamp(server: &Server, resource: &Resource, old: &Object, new: &mut Object) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("certificates.k8s.io", "certificatesigningrequests") => {
            certificates::stamp(&server.clock.now(), old, new);
        }
        ("", "persistentvolumes") => volumes::stamp(&server.clock.now(), old, new),
        _ => {}
    }
}
