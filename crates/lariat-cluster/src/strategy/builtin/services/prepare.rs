//! A Service before it is checked.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use super::others::Others;
use super::{addresses, families, patch, ports};
use crate::server::Server;
use crate::status::ApiError;
use crate::strategy::builtin::parts::{at, is_void};

/// Where a Service is given what it needs.
#[derive(Debug)]
pub(super) struct Allocation<'a> {
    pub(super) server: &'a Server,
    pub(super) resource: &'a Resource,
    /// What the other Services have.
    pub(super) others: Others,
    /// Whether nothing is kept, so that less is checked.
    pub(super) dry_run: bool,
}

/// Gives a new Service an address, and ports of the nodes if it wants them.
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

/// Keeps or drops what a Service was allocated, by its type, and allocates the rest.
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

/// Returns the spec of a Service, which is made if it is missing.
pub(super) fn spec_mut(object: &mut Object) -> &mut Value {
    object.entry("spec").or_insert_with(|| json!({}))
}

/// Returns the type of a Service.
pub(super) fn kind(object: &Object) -> &str {
    let kind = at(object, &["spec", "type"]).and_then(Value::as_str);
    kind.unwrap_or("ClusterIP")
}

/// Returns whether a Service only names something outside, and so has no address.
pub(super) fn is_external(object: &Object) -> bool {
    kind(object) == "ExternalName"
}

/// Returns whether the nodes need a port for checks of their health.
pub(super) fn needs_check(object: &Object) -> bool {
    let policy = at(object, &["spec", "externalTrafficPolicy"]);
    kind(object) == "LoadBalancer" && policy == Some(&"Local".into())
}
