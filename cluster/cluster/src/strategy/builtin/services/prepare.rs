//! A Service before it is checked.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use super::allocation::{Allocation, Others};
use super::spec::is_external;
use super::{addresses, families, patch, ports};
use crate::server::Server;
use crate::status::ApiError;
use crate::strategy::builtin::parts::{at, is_void};

/// Allocates the address of a new Service, and ports of the nodes if it wants them.
pub(in crate::strategy::builtin) fn prepare_create(
    server: &Server,
    resource: &Resource,
    object: &mut Object,
    dry_run: bool,
) -> Result<(), ApiError> {
    let allocation = Allocation {
        server,
        resource,
        others: Others::of(server, resource, ""),
        dry_run,
    };
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        && !is_void(spec.get("clusterIP"))
        && is_void(spec.get("clusterIPs"))
    {
        let first = spec.get("clusterIP").cloned();
        spec.insert("clusterIPs".into(), json!([first]));
    }
    families::choose(&allocation, None, object)?;
    addresses::allocate(&allocation, object)?;
    ports::allocate(&allocation, None, object)
}

/// Keeps, releases or allocates addresses and ports, by the Service's type.
pub(in crate::strategy::builtin) fn prepare_update(
    server: &Server,
    resource: &Resource,
    (old, new): (&Object, &mut Object),
    dry_run: bool,
) -> Result<(), ApiError> {
    let uid = at(old, &["metadata", "uid"]).and_then(Value::as_str);
    let allocation = Allocation {
        server,
        resource,
        others: Others::of(server, resource, uid.unwrap_or_default()),
        dry_run,
    };
    patch::keep(old, new);
    families::choose(&allocation, Some(old), new)?;
    if is_external(old) && !is_external(new) {
        addresses::allocate(&allocation, new)?;
    }
    ports::allocate(&allocation, Some(old), new)?;
    patch::drop(old, new);
    Ok(())
}
