//! What the server decides about objects of built-in kinds.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;

use super::builtin::certificates;
use super::{builtin, special};
use crate::server::Server;
use crate::status::ApiError;

/// Fills in what the server decides about a new object.
///
/// A dry run does not keep it.
///
/// # Errors
///
/// What it asks for cannot be had, such as an address that is taken.
pub(crate) fn prepare_create(
    server: &Server,
    resource: &Resource,
    object: &mut Object,
    dry_run: bool,
) -> Result<(), ApiError> {
    special::prepare_create(resource, object);
    builtin::prepare_create(server, resource, object, dry_run)
}

/// Fills in what the server decides about an object that was changed.
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

/// Fills in the times of what a client wrote into a status.
pub(crate) fn stamp(server: &Server, resource: &Resource, old: &Object, new: &mut Object) {
    if resource.group == "certificates.k8s.io" && resource.plural == "certificatesigningrequests" {
        certificates::stamp(&server.clock.now(), old, new);
    }
}
