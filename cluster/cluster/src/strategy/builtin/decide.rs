//! The strategy of each kind.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;

use super::{devices, machinery, pods, services, workloads};
use crate::server::Server;
use crate::status::ApiError;

/// Prepares a new object.
pub(in crate::strategy) fn prepare_create(
    server: &Server,
    resource: &Resource,
    object: &mut Object,
    dry_run: bool,
) -> Result<(), ApiError> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pods::prepare_create(&server.clock.now(), object),
        ("", "services") => services::prepare_create(server, resource, object, dry_run)?,
        ("batch", "jobs") => workloads::prepare_job(object),
        ("resource.k8s.io", "resourceslices") => {
            devices::stamp_taints(&server.clock.now(), object);
        }
        ("apiregistration.k8s.io", "apiservices") => machinery::prepare_service(server, object),
        _ => {}
    }
    Ok(())
}

/// Prepares an object that was changed.
pub(in crate::strategy) fn prepare_update(
    server: &Server,
    resource: &Resource,
    (old, new): (&Object, &mut Object),
    dry_run: bool,
) -> Result<(), ApiError> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "services") => services::prepare_update(server, resource, (old, new), dry_run),
        ("resource.k8s.io", "resourceslices") => {
            devices::stamp_taints(&server.clock.now(), new);
            Ok(())
        }
        _ => Ok(()),
    }
}
