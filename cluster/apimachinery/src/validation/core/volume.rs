//! PersistentVolumes.

use serde_json::Value;

use crate::object::Object;
use crate::validation::causes::Causes;
use crate::validation::claims::check_access_modes;
use crate::validation::context::{Context, Part};
use crate::validation::dump;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::pod::check_node_selector;
use crate::validation::resources;
use crate::validation::rule::{self, Rule, Rules};
use crate::validation::volumes;

pub(in crate::validation) fn persistent_volume(context: &Context<'_>, causes: &mut Causes) {
    // Go compares the metadata only.
    if context.updates(Part::Status) {
        return;
    }
    let spec = context.get("spec");
    let old = context.old("spec");
    check_access_modes(&spec.get("accessModes"), "", causes);
    check_capacity(&spec.get("capacity"), causes);
    // In the order of `ValidatePersistentVolumeSpec`.
    rule::check(&spec, POLICY, causes);
    check_affinity(&spec, old.as_ref(), causes);
    let name = context.get("metadata");
    let has_affinity = spec.has("nodeAffinity");
    check_source(name.text_of("name"), has_affinity, &spec, causes);
    rule::check(&spec, USE, causes);
    let attributes = spec.get("volumeAttributesClassName");
    if attributes.is_set() {
        if causes.check_given(&attributes, "an empty string is disallowed") {
            causes.check_format(&attributes, formats::dns_subdomain);
        }
        if !spec.has("csi") {
            let detail = "has to be specified when using volumeAttributesClassName";
            causes.required(&spec.get("csi"), detail);
        }
    }
    check_mount_options(context, &spec, causes);
    if let Some(old) = old {
        check_fixed(context, &spec, &old, causes);
    }
}

/// The plugins whose volumes may have the annotation that `mountOptions` replaced.
const MOUNTED: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

// `checkMountOption` in `k8s.io/kubernetes/pkg/volume/validation`.
fn check_mount_options(context: &Context<'_>, spec: &Field<'_>, causes: &mut Causes) {
    const OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
    let annotations = context.get("metadata").get("annotations");
    if annotations.has(OPTIONS) && !MOUNTED.iter().any(|plugin| spec.has(plugin)) {
        // The path has the name as a member, not as a key.
        let detail = "may not specify mount options for this volume type";
        causes.forbidden(&annotations.get(OPTIONS), detail);
    }
}

const POLICY: Rules = &[(
    "persistentVolumeReclaimPolicy",
    Rule::MaybeOneOf(&["Delete", "Recycle", "Retain"]),
)];

const USE: Rules = &[
    ("storageClassName", Rule::Text(formats::dns_subdomain)),
    ("volumeMode", Rule::SupportedIfSet(&["Block", "Filesystem"])),
];

fn check_capacity(capacity: &Field<'_>, causes: &mut Causes) {
    causes.check_given(capacity, "");
    let count = capacity.entries().count();
    if !capacity.has("storage") || count > 1 {
        // Beside the missing one: an empty capacity has both causes.
        causes.unsupported_as(capacity, capacity.value().clone(), &["storage"]);
    }
    for (_, at) in capacity.entries() {
        resources::check_basic(&at, causes);
        resources::check_positive(&at, causes);
    }
}

fn check_affinity(spec: &Field<'_>, old: Option<&Field<'_>>, causes: &mut Causes) {
    let affinity = spec.get("nodeAffinity");
    if !affinity.is_set() {
        return;
    }
    let required = affinity.get("required");
    if !required.is_set() {
        causes.required(&required, "must specify required node constraints");
        return;
    }
    // Values of an affinity were not checked once.
    let odd = |value: Field<'_>| !formats::label_value(value.text()).is_empty();
    let any_values = old.is_some_and(|old| {
        let terms = old
            .get("nodeAffinity")
            .get("required")
            .get("nodeSelectorTerms");
        terms.items().any(|term| {
            let expressions = term.get("matchExpressions");
            expressions
                .items()
                .any(|each| each.get("values").items().any(odd))
        })
    });
    check_node_selector(&required, any_values, causes);
}

fn check_source(name: &str, has_affinity: bool, spec: &Field<'_>, causes: &mut Causes) {
    // After the affinity, as in `ValidatePersistentVolumeSpec`.
    volumes::check_persistent(spec, causes);
    let iscsi = spec.get("iscsi");
    let portal = iscsi.text_of("targetPortal");
    // The kernel limits the name of an interface, which is made of the two.
    if iscsi.has("initiatorName") && name.len() + 1 + portal.len() > 64 {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
            characters if iscsi.initiatorName is specified.";
        causes.invalid_as(&iscsi.get("targetportal"), portal, detail);
    }
    // Go looks at the first source only, the others are refused as superfluous.
    let first = volumes::persistent_members().find(|member| spec.has(member));
    if first == Some("local") && !has_affinity {
        causes.required(
            &spec.get("nodeAffinity"),
            "Local volume requires node affinity",
        );
    }
    let policy = spec.get("persistentVolumeReclaimPolicy");
    let path = spec.get("hostPath").text_of("path");
    // Recycling deletes everything below.
    if policy.text() == "Recycle" && is_root(path) {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        causes.forbidden(&policy, detail);
    }
}

/// Returns whether a path is another spelling of `/`.
// `path.Clean(…) == "/"`: above the root is the root.
fn is_root(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    path.starts_with('/') && depth == 0
}

/// Checks the immutable members.
fn check_fixed(context: &Context<'_>, spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let mut now = spec.value().clone();
    let secret = "controllerExpandSecretRef";
    // This secret may be added later, for volumes from before expansion.
    if old.get("csi").is_set() && !old.get("csi").has(secret) {
        let source = now.get_mut("csi").and_then(Value::as_object_mut);
        source.map(|source| source.remove(secret));
    }
    let changed =
        |member: &'static str| now.get(member).unwrap_or(&Value::Null) != old.member(member);
    // `ValidatePersistentVolumeUpdate` compares the source as one structure.
    if volumes::persistent_members().any(changed) {
        let difference = dump::diff("PersistentVolumeSource", old.value(), &now);
        let detail =
            format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        causes.forbidden(&spec.get("persistentvolumesource"), &detail);
    }
    // The paths of these two begin at the object, not at `spec`.
    let mode = context.get("volumeMode");
    causes.check_immutable(
        &mode.with(spec.member("volumeMode")),
        &old.get("volumeMode"),
    );
    let (now, was) = (spec.get("nodeAffinity"), old.get("nodeAffinity"));
    if was.is_set() && !is_renamed(now.value(), was.value()) {
        let at = context.get("nodeAffinity").with(now.value());
        let detail = "field is immutable, except for updating from beta label to GA";
        causes.invalid(&at, detail);
    }
    let attributes = "volumeAttributesClassName";
    if old.has(attributes) && !spec.has(attributes) {
        let detail = "update from non-nil value to nil is forbidden";
        causes.forbidden(&spec.get(attributes), detail);
    }
}

/// Labels that had other names once.
const RENAMED: [(&str, &str); 5] = [
    (
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    (
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
    ),
];

/// Returns whether a value is another one in which labels may have their new names.
fn is_renamed(now: &Value, was: &Value) -> bool {
    match (now, was) {
        (Value::Object(now), Value::Object(was)) => {
            // The key is compared below, where a new name counts as the same.
            let names = now.keys().chain(was.keys()).filter(|name| *name != "key");
            let mut pairs = names.map(|name| (now.get(name), was.get(name)));
            is_key(now, was)
                && pairs.all(|pair| match pair {
                    (Some(now), Some(was)) => is_renamed(now, was),
                    (now, was) => now == was,
                })
        }
        (Value::Array(now), Value::Array(was)) => {
            now.len() == was.len() && now.iter().zip(was).all(|(now, was)| is_renamed(now, was))
        }
        _ => now == was,
    }
}

/// Checks the spec of a volume that is attached without being an object of its own.
pub(in crate::validation) fn check_inline_volume(spec: &Field<'_>, causes: &mut Causes) {
    let forbid = |name, is_given: bool, causes: &mut Causes| {
        let at = spec.get(name);
        if is_given {
            causes.forbidden(&at, "may not be specified in the context of inline volumes");
        }
    };
    forbid("claimRef", spec.has("claimRef"), causes);
    forbid("capacity", !spec.get("capacity").is_void(), causes);
    if !spec.has("csi") {
        let detail = "has to be specified in the context of inline volumes";
        causes.required(&spec.get("csi"), detail);
    }
    check_access_modes(&spec.get("accessModes"), "", causes);
    let policy = spec.get("persistentVolumeReclaimPolicy");
    if !matches!(policy.text(), "" | "Retain") {
        let detail = "may only be Retain in the context of inline volumes";
        causes.forbidden(&policy, detail);
    }
    forbid("nodeAffinity", spec.has("nodeAffinity"), causes);
    // It has neither a name nor an affinity that would count.
    check_source("", false, spec, causes);
    let has_class = !spec.get("storageClassName").is_void();
    forbid("storageClassName", has_class, causes);
    let mode = spec.get("volumeMode");
    if mode.is_set() && mode.text() != "Filesystem" {
        let detail =
            "may not specify volumeMode other than Filesystem in the context of inline volumes";
        causes.forbidden(&mode, detail);
    }
}

/// Returns whether a requirement is about the same label or its renamed form.
fn is_key(now: &Object, was: &Object) -> bool {
    let key = |of: &Object| of.get("key").and_then(Value::as_str).map(str::to_owned);
    let (now, was) = (key(now).unwrap_or_default(), key(was).unwrap_or_default());
    let new = RENAMED.iter().find(|(old, _)| *old == was);
    // In Go the new name of a label that has none is empty.
    now == was || now == new.map_or("", |(_, new)| new)
}
