//! Checks of where volumes come from.

use std::collections::BTreeSet;

use serde_json::Value;

use super::pod::{Pod, text};
use super::violation::{Violation, plural, quoted};

const ALLOWED: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

const RESTRICTED: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

/// Lists volumes: `volume "a"`.
fn volumes(names: &[&str]) -> String {
    let word = plural("volume", "volumes", names.len());
    format!("{word} {}", quoted(names.iter().copied()))
}

/// Returns the first of some sources that a volume has.
fn source(volume: &Value, sources: &[&'static str]) -> Option<&'static str> {
    let mut sources = sources.iter();
    let found = sources.find(|source| volume.get(**source).is_some_and(Value::is_object));
    found.copied()
}

pub(super) fn host_paths(pod: Pod<'_>) -> Option<Violation> {
    let bad = pod
        .volumes()
        .filter(|volume| volume["hostPath"].is_object());
    let bad: Vec<&str> = bad.map(|volume| text(&volume["name"])).collect();
    (!bad.is_empty()).then(|| Violation::new("hostPath volumes", volumes(&bad)))
}

pub(super) fn restricted(pod: Pod<'_>) -> Option<Violation> {
    let bad = || {
        pod.volumes()
            .filter(|volume| source(volume, &ALLOWED).is_none())
    };
    let names: Vec<&str> = bad().map(|volume| text(&volume["name"])).collect();
    let types: BTreeSet<&str> = bad()
        .map(|volume| source(volume, &RESTRICTED).unwrap_or("unknown"))
        .collect();
    let verb = plural("uses", "use", names.len());
    let word = plural(
        "restricted volume type",
        "restricted volume types",
        types.len(),
    );
    (!names.is_empty()).then(|| {
        let detail = format!("{} {verb} {word} {}", volumes(&names), quoted(types));
        Violation::new("restricted volume types", detail)
    })
}
