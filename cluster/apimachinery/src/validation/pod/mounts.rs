//! Volumes in containers: as files, and as block devices.

use std::collections::HashSet;

use serde_json::Value;

use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::paths;

pub(super) fn check(container: &Field<'_>, volumes: &[Field<'_>], causes: &mut Causes) {
    check_mounts(container, volumes, causes);
    check_devices(container, volumes, causes);
}

fn has(list: &Field<'_>, member: &str, text: &str) -> bool {
    let items = list.list();
    let is =
        |item: &Value, member: &str, text: &str| item[member].as_str().unwrap_or_default() == text;
    items.iter().enumerate().any(|(index, item)| {
        let name = item["name"].as_str().unwrap_or_default();
        // `GetVolumeMountMap` and `GetVolumeDeviceMap`: the last path of a name counts.
        is(item, member, text) && !items[index + 1..].iter().any(|each| is(each, "name", name))
    })
}

/// Some causes are at the list, as in Go.
fn check_mounts(container: &Field<'_>, volumes: &[Field<'_>], causes: &mut Causes) {
    let (list, devices) = (
        container.get("volumeMounts"),
        container.get("volumeDevices"),
    );
    let mut points = HashSet::new();
    for mount in list.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        causes.check_given(&name, "");
        if !volumes
            .iter()
            .any(|volume| volume.text_of("name") == name.text())
        {
            causes.not_found(&name, name.text());
        }
        causes.check_given(&path, "");
        if !points.insert(path.text()) {
            causes.invalid_as(&path, path.text(), "must be unique");
        }
        if has(&devices, "name", name.text()) {
            causes.invalid_as(
                &name,
                name.text(),
                "must not already exist in volumeDevices",
            );
        }
        if has(&devices, "devicePath", path.text()) {
            let detail = "must not already exist as a path in volumeDevices";
            causes.invalid_as(&path, path.text(), detail);
        }
        let (below, expression) = (mount.get("subPath"), mount.get("subPathExpr"));
        // `ValidateVolumeMounts` passes the path of the list for these.
        paths::check_descending(&list.get("subPath").with(below.value()), causes);
        if !below.is_void() && !expression.is_void() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            causes.invalid(&expression, detail);
        }
        paths::check_descending(&list.get("subPathExpr").with(expression.value()), causes);
        check_propagation(container, &list, &mount, causes);
        check_recursion(&list, &mount, causes);
    }
}

fn check_propagation(
    container: &Field<'_>,
    list: &Field<'_>,
    mount: &Field<'_>,
    causes: &mut Causes,
) {
    // `validateMountPropagation`.
    let at = list
        .get("mountPropagation")
        .with(mount.member("mountPropagation"));
    if !at.is_set() {
        return;
    }
    causes.check_supported(&at, &["Bidirectional", "HostToContainer", "None"]);
    // Mounts that go back to the host affect all its Pods.
    let privileged = container.get("securityContext").is_true("privileged");
    if at.text() == "Bidirectional" && !privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        causes.forbidden(&at, detail);
    }
}

fn check_recursion(list: &Field<'_>, mount: &Field<'_>, causes: &mut Causes) {
    let at = list
        .get("recursiveReadOnly")
        .with(mount.member("recursiveReadOnly"));
    if !at.is_set() {
        return;
    }
    causes.check_supported(&at, &["Disabled", "Enabled", "IfPossible"]);
    // Disabled demands nothing of the mount.
    if !matches!(at.text(), "Enabled" | "IfPossible") {
        return;
    }
    if !mount.is_true("readOnly") {
        causes.forbidden(&at, "may only be specified when readOnly is true");
    }
    if mount.has("mountPropagation") && mount.text_of("mountPropagation") != "None" {
        let detail = "may only be specified when mountPropagation is None or not specified";
        causes.forbidden(&at, detail);
    }
}

fn check_devices(container: &Field<'_>, volumes: &[Field<'_>], causes: &mut Causes) {
    let mounts = container.get("volumeMounts");
    let (mut names, mut seen) = (HashSet::new(), HashSet::new());
    for device in container.get("volumeDevices").items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        // `ValidateVolumeDevices`: only a claim can be a device without a file system.
        let volume = volumes
            .iter()
            .find(|volume| volume.text_of("name") == name.text());
        causes.check_given(&name, "");
        if names.contains(name.text()) {
            causes.invalid_as(&name, name.text(), "must be unique");
        }
        match volume {
            None => causes.not_found(&name, name.text()),
            Some(volume) if !volume.has("persistentVolumeClaim") && !volume.has("ephemeral") => {
                let detail = "can only use volume source type of PersistentVolumeClaim or \
                    Ephemeral for block mode";
                causes.invalid(&name, detail);
            }
            Some(_) => {}
        }
        causes.check_given(&path, "");
        if seen.contains(path.text()) {
            causes.invalid_as(&path, path.text(), "must be unique");
        }
        // A path with backsteps is not remembered, so it is no duplicate of itself.
        if paths::has_backsteps(path.text()) {
            causes.invalid(&path, "can not contain backsteps ('..')");
        } else {
            seen.insert(path.text());
        }
        if has(&mounts, "name", name.text()) {
            causes.invalid_as(&name, name.text(), "must not already exist in volumeMounts");
        }
        if has(&mounts, "mountPath", path.text()) {
            let detail = "must not already exist as a path in volumeMounts";
            causes.invalid_as(&path, path.text(), detail);
        }
        if !name.is_void() {
            names.insert(name.text());
        }
    }
}
