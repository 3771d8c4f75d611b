//! Cells of volumes, devices and claims for them.

use serde_json::Value;

use super::parts::members;
use super::row::UNSET;
use crate::printers::source::Row;

/// Returns the phase of a volume or a claim, or that it is being deleted.
pub(super) fn phase(object: Row<'_>) -> &str {
    if object.is_deleting() {
        "Terminating"
    } else {
        object.text("/status/phase")
    }
}

/// Returns access modes in their short forms, in a fixed order.
pub(super) fn access_modes(modes: Row<'_>) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| modes.list("").iter().any(|each| each == mode);
    let present = short.into_iter().filter(|(mode, _)| has(mode));
    let names: Vec<&str> = present.map(|(_, name)| name).collect();
    names.join(",")
}

/// Returns the access modes of the volume that a claim has.
pub(super) fn claim_access_modes(claim: Row<'_>) -> String {
    match claim.text("/spec/volumeName") {
        "" => String::new(),
        _ => access_modes(claim.at("/status/accessModes")),
    }
}

/// Returns the capacity of the volume that a claim has.
pub(super) fn claim_capacity(claim: Row<'_>) -> String {
    match claim.text("/spec/volumeName") {
        "" => String::new(),
        _ => claim.scalar_or("/status/capacity/storage", "0"),
    }
}

/// Returns the name of a StorageClass, and whether it is the default.
pub(super) fn class_name(class: Row<'_>) -> String {
    let annotations = class.get("/metadata/annotations");
    let is_default = [
        "storageclass.kubernetes.io",
        "storageclass.beta.kubernetes.io",
    ]
    .map(|prefix| format!("{prefix}/is-default-class"))
    .iter()
    .any(|annotation| annotations.get(annotation) == Some(&Value::from("true")));
    let name = class.text("/metadata/name");
    if is_default {
        format!("{name} (default)")
    } else {
        name.to_owned()
    }
}

/// Returns the audiences of the tokens that a CSI driver gets.
pub(super) fn token_audiences(driver: Row<'_>) -> String {
    let requests = driver.at("/spec/tokenRequests");
    match requests.count("") {
        0 => UNSET.to_owned(),
        _ => members(requests, "/audience"),
    }
}

/// Returns how far a claim for devices has come.
pub(super) fn device_claim_state(claim: Row<'_>) -> String {
    let (is_deleting, is_allocated) = (claim.is_deleting(), claim.has("/status/allocation"));
    let states = [
        ("deleted", is_deleting),
        ("allocated", is_allocated),
        ("pending", !is_allocated && !is_deleting),
        ("reserved", !claim.list("/status/reservedFor").is_empty()),
    ];
    let present = states.into_iter().filter(|(_, is_present)| *is_present);
    let names: Vec<&str> = present.map(|(name, _)| name).collect();
    names.join(",")
}
