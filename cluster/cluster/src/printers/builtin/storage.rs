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

/// Returns the StorageClass of a volume or a claim.
///
/// As `GetPersistentVolumeClass`: the annotation counts even if it is empty.
pub(super) fn class(object: Row<'_>) -> &str {
    let annotations = object.get("/metadata/annotations");
    let annotation = annotations.get("volume.beta.kubernetes.io/storage-class");
    match annotation.and_then(Value::as_str) {
        Some(class) => class,
        None => object.text("/spec/storageClassName"),
    }
}

/// Returns the VolumeAttributesClass of a volume or a claim, which may be empty.
pub(super) fn attributes_class(object: Row<'_>) -> &str {
    let class = object.get("/spec/volumeAttributesClassName").as_str();
    class.unwrap_or(UNSET)
}

/// Returns the audiences of the tokens that a CSI driver gets.
pub(super) fn token_audiences(driver: Row<'_>) -> String {
    let requests = driver.at("/spec/tokenRequests");
    match requests.count("") {
        0 => UNSET.to_owned(),
        _ => members(requests, "/audience"),
    }
}

/// Returns the state of a claim for devices.
pub(super) fn device_claim_state(claim: Row<'_>) -> String {
    let (is_deleting, is_allocated) = (claim.is_deleting(), claim.has("/status/allocation"));
    let states = [
        ("deleted", is_deleting),
        ("allocated", is_allocated),
        ("pending", !is_allocated && !is_deleting),
        (
            "reserved",
            is_allocated && !claim.list("/status/reservedFor").is_empty(),
        ),
    ];
    let present = states.into_iter().filter(|(_, is_present)| *is_present);
    let names: Vec<&str> = present.map(|(name, _)| name).collect();
    names.join(",")
}
