//! Volumes, claims, classes and drivers.

use super::collected::Warnings;
use super::labels::{check_key, check_term, deprecated};
use crate::object::Object;
use crate::quantity::Quantity;
use crate::validation::field::Field;

/// The annotation that `storageClassName` replaced.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const CLASS_INSTEAD: &str = r#"deprecated since v1.8; use "storageClassName" attribute instead"#;
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
const OPTIONS_INSTEAD: &str = r#"deprecated since v1.31; use "mountOptions" attribute instead"#;

/// The plugins of volumes that do nothing any more: since when they are deprecated, and without function.
const PLUGINS: &[(&str, &str, &str)] = &[
    ("cephfs", "v1.28", "v1.31+"),
    ("photonPersistentDisk", "v1.11", "v1.16+"),
    ("scaleIO", "v1.16", "v1.22+"),
    ("storageOS", "v1.22", "v1.25+"),
    ("glusterfs", "v1.25", "v1.26+"),
    ("rbd", "v1.28", "v1.31+"),
    ("flocker", "v1.22", "v1.25+"),
    ("quobyte", "v1.22", "v1.25+"),
];

// The orders are those of `warningsForPersistentVolumeSpecAndMeta` and of `warningsForPodSpecAndMeta`; the lists
// differ in what each kind has as a source.
const IN_VOLUMES: [&str; 6] = [
    "cephfs",
    "photonPersistentDisk",
    "scaleIO",
    "storageOS",
    "glusterfs",
    "rbd",
];
const IN_PODS: [&str; 5] = ["scaleIO", "flocker", "storageOS", "quobyte", "glusterfs"];

/// Warns of a volume plugin that has no function any more.
fn check_plugins(source: &Field<'_>, names: &[&str], warnings: &mut Warnings) {
    for name in names {
        let mut known = PLUGINS.iter();
        if let Some((name, since, useless)) = known.find(|(known, ..)| known == name)
            && source.has(member_of(name))
        {
            let what = format!("deprecated in {since}, non-functional in {useless}");
            warnings.add_at(&source.get(name), what);
        }
    }
}

/// Returns the member of a plugin, whose name in messages is that of Go's field.
fn member_of(plugin: &str) -> &str {
    if plugin == "storageOS" {
        "storageos"
    } else {
        plugin
    }
}

pub(super) fn volume(object: &Object, warnings: &mut Warnings) {
    let spec = Field::of(object, "spec");
    let annotations = Field::of(object, "metadata").get("annotations");
    for (name, instead) in [(CLASS, CLASS_INSTEAD), (MOUNT_OPTIONS, OPTIONS_INSTEAD)] {
        if annotations.has(name) {
            warnings.add_at(&annotations.key(name), instead);
        }
    }
    let policy = spec.get("persistentVolumeReclaimPolicy");
    if policy.text() == "Recycle" {
        let what = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic \
            provisioning.";
        warnings.add_at(&policy, what);
    }
    let required = spec.get("nodeAffinity").get("required");
    // The affinity of volumes has only required terms.
    for term in required.get("nodeSelectorTerms").items() {
        check_term(&term, false, warnings);
    }
    check_plugins(&spec, &IN_VOLUMES, warnings);
}

/// Checks the volumes of a Pod.
pub(super) fn pod_volumes(volumes: &Field<'_>, warnings: &mut Warnings) {
    for volume in volumes.items() {
        // Three calls, because other warnings stand between the plugins in Go.
        check_plugins(&volume, &["photonPersistentDisk"], warnings);
        let repository = volume.get("gitRepo");
        if repository.is_set() {
            let what = "deprecated in v1.11, and disabled by default in v1.33+";
            warnings.add_at(&repository, what);
        }
        check_plugins(&volume, &IN_PODS, warnings);
        // `GetWarningsForPersistentVolumeClaimSpec`; the annotations of the template are not looked at.
        let template = volume.get("ephemeral").get("volumeClaimTemplate");
        claim_spec(&template.get("spec"), warnings);
        check_plugins(&volume, &["cephfs", "rbd"], warnings);
    }
}

pub(super) fn claim(object: &Object, warnings: &mut Warnings) {
    let annotations = Field::of(object, "metadata").get("annotations");
    if annotations.has(CLASS) {
        warnings.add_at(&annotations.key(CLASS), CLASS_INSTEAD);
    }
    claim_spec(&Field::of(object, "spec"), warnings);
}

pub(super) fn claim_spec(spec: &Field<'_>, warnings: &mut Warnings) {
    for list in ["requests", "limits"] {
        warnings.check_bytes(&spec.get("resources").get(list), "storage");
    }
}

// `GetWarningsForStorageClass`: the message does not repeat the label, unlike that of `GetWarningsForNodeSelector`
// below.
pub(super) fn storage_class(object: &Object, warnings: &mut Warnings) {
    for topology in Field::of(object, "allowedTopologies").items() {
        for expression in topology.get("matchLabelExpressions").items() {
            let key = expression.get("key");
            if let Some(text) = deprecated(key.text()) {
                warnings.add_at(&key, text);
            }
        }
    }
}

pub(super) fn capacity(object: &Object, warnings: &mut Warnings) {
    let topology = Field::of(object, "nodeTopology");
    for expression in topology.get("matchExpressions").items() {
        check_key(&expression.get("key"), warnings);
    }
    let labels = topology.get("matchLabels");
    for (name, _) in labels.entries() {
        if let Some(text) = deprecated(name) {
            // The path has the label after a dot and not in brackets: Go uses `Child`, not `Key`.
            warnings.add_at(&labels.get(name), text);
        }
    }
}

pub(super) fn driver(object: &Object, old: Option<&Object>, warnings: &mut Warnings) {
    let spec = Field::of(object, "spec");
    let requests = spec.get("tokenRequests");
    // Someone who changes something else of an old driver cannot be expected to mend this.
    let is_kept = old.is_some_and(|old| {
        let old = Field::of(old, "spec").get("tokenRequests");
        old.list() == requests.list()
    });
    if !requests.is_void() && !is_kept && !spec.has("serviceAccountTokenInSecrets") {
        warnings.add(
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible \
             logging of tokens in volume attributes",
        );
    }
}

pub(super) fn quota(object: &Object, warnings: &mut Warnings) {
    let hard = Field::of(object, "spec").get("hard");
    let amount = |name: &str| {
        let text = hard.text_of(name);
        Quantity::parse(text)
    };
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let (mut asked, limit) = (format!("requests.{name}"), format!("limits.{name}"));
        // In quotas `cpu` and `memory` are other names for their requests; the other resources have only the long
        // name.
        if !hard.has(&asked) && matches!(name, "cpu" | "memory") {
            asked = name.to_owned();
        }
        if let Some((request, most)) = amount(&asked).zip(amount(&limit))
            && request > most
        {
            warnings.add(format!(
                "ResourceQuota {asked} ({request}) should be less than {limit} ({most})"
            ));
        }
    }
}
