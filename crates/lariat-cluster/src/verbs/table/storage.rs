//! Rows of volumes and what provides them.

use serde_json::Value;

use super::column::{AGE, NAME, Printer, flag, number, text, wide};
use super::row::Row;

const UNSET: &str = "<unset>";

pub(super) const VOLUMES: Printer = Printer {
    columns: &[
        NAME,
        text("Capacity"),
        text("Access Modes"),
        text("Reclaim Policy"),
        text("Status"),
        text("Claim"),
        text("StorageClass"),
        text("VolumeAttributesClass"),
        text("Reason"),
        AGE,
        wide("VolumeMode"),
    ],
    cells: |volume| {
        let claim = if volume.has("/spec/claimRef") {
            format!(
                "{}/{}",
                volume.text("/spec/claimRef/namespace"),
                volume.text("/spec/claimRef/name")
            )
        } else {
            String::new()
        };
        vec![
            volume.name().into(),
            volume.scalar_or("/spec/capacity/storage", "0").into(),
            access_modes(volume, "/spec/accessModes").into(),
            volume.text("/spec/persistentVolumeReclaimPolicy").into(),
            phase(volume).into(),
            claim.into(),
            class(volume).into(),
            volume
                .text_or("/spec/volumeAttributesClassName", UNSET)
                .into(),
            volume.text("/status/reason").into(),
            volume.age().into(),
            volume.text_or("/spec/volumeMode", UNSET).into(),
        ]
    },
};

pub(super) const CLAIMS: Printer = Printer {
    columns: &[
        NAME,
        text("Status"),
        text("Volume"),
        text("Capacity"),
        text("Access Modes"),
        text("StorageClass"),
        text("VolumeAttributesClass"),
        AGE,
        wide("VolumeMode"),
    ],
    cells: |claim| {
        let volume = claim.text("/spec/volumeName");
        let (capacity, modes) = match volume {
            "" => (String::new(), String::new()),
            _ => (
                claim.scalar_or("/status/capacity/storage", "0"),
                access_modes(claim, "/status/accessModes"),
            ),
        };
        vec![
            claim.name().into(),
            phase(claim).into(),
            volume.into(),
            capacity.into(),
            modes.into(),
            class(claim).into(),
            claim
                .text_or("/spec/volumeAttributesClassName", UNSET)
                .into(),
            claim.age().into(),
            claim.text_or("/spec/volumeMode", UNSET).into(),
        ]
    },
};

fn phase(object: Row<'_>) -> &str {
    if object.is_deleting() {
        "Terminating"
    } else {
        object.text("/status/phase")
    }
}

/// Returns the storage class, which an annotation of old may still name.
fn class(object: Row<'_>) -> &str {
    let annotated = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
    object.text_or(annotated, object.text("/spec/storageClassName"))
}

/// Writes access modes in their short forms, in a fixed order.
fn access_modes(object: Row<'_>, pointer: &str) -> String {
    let modes = object.list(pointer);
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let present = short
        .iter()
        .filter(|(mode, _)| modes.iter().any(|each| each == mode));
    let present: Vec<&str> = present.map(|(_, short)| *short).collect();
    present.join(",")
}

pub(super) const STORAGE_CLASSES: Printer = Printer {
    columns: &[
        NAME,
        text("Provisioner"),
        text("ReclaimPolicy"),
        text("VolumeBindingMode"),
        text("AllowVolumeExpansion"),
        AGE,
    ],
    cells: |class| {
        vec![
            with_default(class, "storageclass").into(),
            class.text("/provisioner").into(),
            class.text_or("/reclaimPolicy", "Delete").into(),
            class.text_or("/volumeBindingMode", "Immediate").into(),
            class.flag("/allowVolumeExpansion").into(),
            class.age().into(),
        ]
    },
};

/// Returns the name of a class, marked if it is the default.
fn with_default(class: Row<'_>, prefix: &str) -> String {
    let is_default = ["", "beta."].iter().any(|beta| {
        let annotation = format!("{prefix}.{beta}kubernetes.io~1is-default-class");
        class.text(&format!("/metadata/annotations/{annotation}")) == "true"
    });
    if is_default {
        format!("{} (default)", class.name())
    } else {
        class.name().to_owned()
    }
}

pub(super) const ATTRIBUTES_CLASSES: Printer = Printer {
    columns: &[NAME, text("DriverName"), AGE],
    cells: |class| {
        vec![
            class.name().into(),
            class.text("/driverName").into(),
            class.age().into(),
        ]
    },
};

pub(super) const ATTACHMENTS: Printer = Printer {
    columns: &[
        NAME,
        text("Attacher"),
        text("PV"),
        text("Node"),
        flag("Attached"),
        AGE,
    ],
    cells: |attachment| {
        vec![
            attachment.name().into(),
            attachment.text("/spec/attacher").into(),
            attachment.text("/spec/source/persistentVolumeName").into(),
            attachment.text("/spec/nodeName").into(),
            attachment.flag("/status/attached").into(),
            attachment.age().into(),
        ]
    },
};

pub(super) const CSI_DRIVERS: Printer = Printer {
    columns: &[
        NAME,
        flag("AttachRequired"),
        flag("PodInfoOnMount"),
        flag("StorageCapacity"),
        text("TokenRequests"),
        flag("RequiresRepublish"),
        text("Modes"),
        AGE,
    ],
    cells: |driver| {
        let attach = driver.get("/spec/attachRequired").as_bool().unwrap_or(true);
        let audiences: Vec<&str> = driver
            .rows("/spec/tokenRequests")
            .map(|request| request.text("/audience"))
            .collect();
        let audiences: Value = if audiences.is_empty() {
            UNSET.into()
        } else {
            audiences.join(",").into()
        };
        let modes = driver.join("/spec/volumeLifecycleModes", ",");
        vec![
            driver.name().into(),
            attach.into(),
            driver.flag("/spec/podInfoOnMount").into(),
            driver.flag("/spec/storageCapacity").into(),
            audiences,
            driver.flag("/spec/requiresRepublish").into(),
            if modes.is_empty() {
                "<none>".into()
            } else {
                modes.into()
            },
            driver.age().into(),
        ]
    },
};

pub(super) const CSI_NODES: Printer = Printer {
    columns: &[NAME, number("Drivers"), AGE],
    cells: |node| {
        vec![
            node.name().into(),
            node.count("/spec/drivers").into(),
            node.age().into(),
        ]
    },
};

pub(super) const CSI_CAPACITIES: Printer = Printer {
    columns: &[NAME, text("StorageClassName"), text("Capacity")],
    cells: |capacity| {
        vec![
            capacity.name().into(),
            capacity.text("/storageClassName").into(),
            capacity.scalar_or("/capacity", UNSET).into(),
        ]
    },
};
