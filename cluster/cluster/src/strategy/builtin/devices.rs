//! Strategies of device claims and slices.
//!
//! Source: `k8s.io/kubernetes/pkg/registry/resource`.

use std::collections::HashSet;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_core::ObjectKey;
use serde_json::Value;

use super::parts::at;
use crate::server::Server;
use crate::strategy::part::Part;

/// The label of namespaces whose claims may be for administration.
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";

/// The devices that a claim was given.
const RESULTS: [&str; 4] = ["status", "allocation", "devices", "results"];

/// Refuses admin access to devices in a namespace without the label for it.
// `AuthorizedForAdmin`.
pub(in crate::strategy) fn check_new(
    server: &Server,
    resource: &Resource,
    object: &Object,
) -> Option<StatusCause> {
    let path: &[&str] = match resource.plural.as_str() {
        "resourceclaims" => &["spec", "devices", "requests"],
        _ => &["spec", "spec", "devices", "requests"],
    };
    let wanted = list(object, path)
        .iter()
        .position(|request| request["exactly"]["adminAccess"] == true);
    // The API server names this path for templates too.
    let place = wanted.map(|index| format!("spec.devices.requests[{index}].adminAccess"))?;
    check_admin(server, object, &place)
}

/// Refuses a status with admin access in a namespace without the label for it.
// `AuthorizedForAdminStatus`.
pub(in crate::strategy) fn check_status(
    server: &Server,
    old: &Object,
    new: &Object,
) -> Option<StatusCause> {
    let granted = |object| {
        let mut results = list(object, &RESULTS).iter();
        results.position(|result| result["adminAccess"] == true)
    };
    // Only new access needs the label, which may have been taken off the namespace since.
    let index = granted(new).filter(|_| granted(old).is_none());
    let place =
        index.map(|index| format!("status.allocation.devices.results[{index}].adminAccess"))?;
    check_admin(server, new, &place)
}

fn check_admin(server: &Server, object: &Object, place: &str) -> Option<StatusCause> {
    let namespace = ObjectKey::cluster(metadata_text(object, "namespace"));
    let stored = server.store.get(server.kinds.namespaces, &namespace);
    let allowed = stored.is_some_and(|stored| {
        let label = ["metadata", "labels", ADMIN_LABEL];
        at(&stored.object(), &label).is_some_and(|value| value == "true")
    });
    let detail = format!(
        "admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
    );
    (!allowed).then(|| StatusCause::forbidden(place, &detail))
}

/// Drops the status of devices that the claim no longer has.
pub(in crate::strategy) fn drop_deallocated(part: Part, old: &Object, new: &mut Object) {
    if part != Part::Status {
        return;
    }
    let devices = |object| {
        let results = list(object, &RESULTS).iter();
        results.map(identity).collect::<HashSet<String>>()
    };
    let (had, has) = (devices(old), devices(new));
    let status = new.get_mut("status").and_then(Value::as_object_mut);
    let Some(status) = status else {
        return;
    };
    let Some(said) = status.get_mut("devices").and_then(Value::as_array_mut) else {
        return;
    };
    said.retain(|device| {
        let device = identity(device);
        // What is said of a device that was never allocated stays, for the validation to refuse.
        !had.contains(&device) || has.contains(&device)
    });
    if said.is_empty() {
        status.remove("devices");
    }
}

/// Sets the time of taints that have none.
pub(in crate::strategy) fn stamp_taints(now: &str, slice: &mut Object) {
    let devices = slice
        .get_mut("spec")
        .and_then(|spec| spec.get_mut("devices")?.as_array_mut());
    for device in devices.into_iter().flatten() {
        let taints = device.get_mut("taints").and_then(Value::as_array_mut);
        for taint in taints.into_iter().flatten() {
            if let Some(taint) = taint.as_object_mut()
                && taint.get("timeAdded").is_none_or(Value::is_null)
            {
                taint.insert("timeAdded".into(), now.into());
            }
        }
    }
}

fn identity(device: &Value) -> String {
    ["driver", "pool", "device", "shareID"]
        .map(|member| device[member].to_string())
        .join("/")
}

fn list<'a>(object: &'a Object, path: &[&str]) -> &'a [Value] {
    let list = at(object, path).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}
