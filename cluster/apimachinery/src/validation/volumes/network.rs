//! Sources that are somewhere else.

use std::sync::LazyLock;

use regex::Regex;

use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::rule::{self, Rule, Rules};

const NFS: Rules = &[("server path", Rule::Given)];

pub(super) fn nfs(at: &Field<'_>, causes: &mut Causes) {
    rule::check(at, NFS, causes);
    if !at.text_of("path").starts_with('/') {
        let path = at.get("path");
        causes.invalid_as(&path, path.text(), "must be an absolute path");
    }
}

const TOO_LONG: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
    characters if iscsi.initiatorName is specified.";

// `validateISCSIVolumeSource` and `validateISCSIPersistentVolumeSource` differ in this message; the latter also looks
// at the name of the Secret.
pub(super) fn iscsi(at: &Field<'_>, causes: &mut Causes) {
    check_iscsi(
        at,
        "must be valid format starting with iqn, eui, or naa",
        causes,
    );
}

/// Checks that the name of a volume and its portal are not too long together.
// With an initiator name the node makes an iSCSI interface `<portal>:<volume>`, whose length is limited.
pub(in crate::validation) fn check_initiator(volume: &Field<'_>, causes: &mut Causes) {
    let (source, name) = (volume.get("iscsi"), volume.text_of("name"));
    let length = name.len() + 1 + source.text_of("targetPortal").len();
    if source.has("initiatorName") && length > 64 {
        causes.invalid_as(&volume.get("name"), name, TOO_LONG);
    }
}

pub(super) fn iscsi_persistent(at: &Field<'_>, causes: &mut Causes) {
    check_iscsi(at, "must be valid format", causes);
    let secret = at.get("secretRef");
    if secret.is_set() {
        causes.check_given(&secret.get("name"), "");
    }
}

fn check_iscsi(at: &Field<'_>, unknown: &str, causes: &mut Causes) {
    causes.check_given(&at.get("targetPortal"), "");
    if causes.check_given(&at.get("iqn"), "") {
        check_qualified(&at.get("iqn"), unknown, causes);
    }
    causes.check_between(&at.get("lun"), 0, 255);
    if (at.is_true("chapAuthDiscovery") || at.is_true("chapAuthSession")) && !at.has("secretRef") {
        causes.required(&at.get("secretRef"), "");
    }
    if at.has("initiatorName") {
        // The path is in lower case in Go.
        let shown = at.get("initiatorname").with(at.member("initiatorName"));
        check_qualified(&shown, unknown, causes);
    }
}

/// The forms of qualified names, by how they begin.
static QUALIFIED: LazyLock<[(&str, Regex); 3]> = LazyLock::new(|| {
    let form = |text: &str| Regex::new(text).expect("it is a valid expression");
    [
        (
            "iqn",
            // The expressions are Go's, with their quirks: the first has no `^`, and the dots of the others match any
            // character.
            form(r"iqn\.\d{4}-\d{2}\.([[:alnum:]\-.]+)(:[^,;*&$|\s]+)$"),
        ),
        ("eui", form("^eui.[[:alnum:]]{16}$")),
        ("naa", form("^naa.[[:alnum:]]{32}$")),
    ]
});

fn check_qualified(at: &Field<'_>, unknown: &str, causes: &mut Causes) {
    let text = at.text();
    match QUALIFIED.iter().find(|(start, _)| text.starts_with(start)) {
        None => causes.invalid_as(at, text, unknown),
        Some((_, form)) if !form.is_match(text) => {
            causes.invalid_as(at, text, "must be valid format");
        }
        Some(_) => {}
    }
}

// `validateGlusterfsPersistentVolumeSource`: the namespace is a pointer, so that an empty one is an error and a
// missing one is not.
pub(super) fn gluster_persistent(at: &Field<'_>, causes: &mut Causes) {
    rule::check(at, &[("endpoints path", Rule::Given)], causes);
    let namespace = at.get("endpointsNamespace");
    if namespace.is_set() && namespace.is_void() {
        let detail = "if the endpointnamespace is set, it must be a valid namespace name";
        causes.invalid(&namespace, detail);
    } else if namespace.is_set() {
        causes.check_format(&namespace, formats::dns_label);
    }
}

// `validateFlockerVolumeSource`. The wrong value is the literal text "resource", copied from the downward API.
pub(super) fn flocker(at: &Field<'_>, causes: &mut Causes) {
    let (name, uuid) = (at.text_of("datasetName"), at.text_of("datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        causes.required(at, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !uuid.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        causes.invalid_as(at, "resource", detail);
    }
    if name.contains('/') {
        causes.invalid(&at.get("datasetName"), "must not contain '/'");
    }
}

/// Checks that a reference to a Secret, if there is one, has some members.
fn check_secret(at: &Field<'_>, members: &[&'static str], causes: &mut Causes) {
    let secret = at.get("secretRef");
    for member in members.iter().filter(|_| secret.is_set()) {
        causes.check_given(&secret.get(member), "");
    }
}

pub(super) fn cinder(at: &Field<'_>, secret: &[&'static str], causes: &mut Causes) {
    causes.check_given(&at.get("volumeID"), "");
    check_secret(at, secret, causes);
}

// `validateStorageOSVolumeSource`, and for PersistentVolumes also a namespace of the Secret.
pub(super) fn storage_os(at: &Field<'_>, secret: &[&'static str], causes: &mut Causes) {
    causes.check_name(&at.get("volumeName"), formats::dns_label);
    rule::check(
        at,
        &[("volumeNamespace", Rule::Text(formats::dns_label))],
        causes,
    );
    check_secret(at, secret, causes);
}

pub(super) fn quobyte(at: &Field<'_>, causes: &mut Causes) {
    let pairs = "must be a host:port pair or multiple pairs separated by commas";
    let registry = at.get("registry");
    if registry.is_void() {
        causes.required(&registry, pairs);
    } else if at.text_of("tenant").len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        // `validateQuobyteVolumeSource` reports a tenant that is too long as "required", and then does not read the
        // registry.
        causes.required(&at.get("tenant"), detail);
    } else {
        // `net.SplitHostPort`: a colon, but several only within brackets.
        let is_pair = |pair: &&str| match pair.strip_prefix('[') {
            Some(rest) => rest.contains("]:"),
            None => pair.matches(':').count() == 1 && !pair.contains(['[', ']']),
        };
        for _ in registry.text().split(',').filter(|pair| !is_pair(pair)) {
            causes.invalid(&registry, pairs);
        }
    }
    causes.check_given(&at.get("volume"), "");
}

// `validateFCVolumeSource`. With `wwids` alone the LUN is neither needed nor checked.
pub(super) fn fibre_channel(at: &Field<'_>, causes: &mut Causes) {
    let (names, ids) = (at.get("targetWWNs"), at.get("wwids"));
    if names.is_void() && ids.is_void() {
        let detail = "must specify either targetWWNs or wwids, but not both";
        causes.required(&names, detail);
    }
    if !names.is_void() && !ids.is_void() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        causes.invalid(&names, detail);
    }
    let lun = at.get("lun");
    if !names.is_void() && !lun.is_set() {
        causes.required(&lun, "lun is required if targetWWNs is specified");
    } else if !names.is_void() {
        causes.check_between(&lun, 0, 255);
    }
}

pub(super) fn flex(at: &Field<'_>, causes: &mut Causes) {
    causes.check_given(&at.get("driver"), "");
    for (key, option) in at.get("options").entries() {
        // `validateFlexVolumeSource`: the kubelet passes its own options under these domains. The dot in front makes
        // `kubernetes.io` itself match, but not `mykubernetes.io`.
        let namespace = key.split('/').next().unwrap_or(key).to_lowercase();
        let namespace = format!(".{namespace}");
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            causes.invalid_as(&option, key, detail);
        }
    }
}

pub(super) fn azure_file_persistent(at: &Field<'_>, causes: &mut Causes) {
    rule::check(at, &[("secretName shareName", Rule::Given)], causes);
    // A missing namespace is that of the Pod.
    if at.has("secretNamespace") {
        causes.check_given(&at.get("secretNamespace"), "");
    }
}

const AZURE_DISK: Rules = &[
    ("diskName diskURI", Rule::Given),
    (
        "cachingMode",
        Rule::SupportedIfSet(&["None", "ReadOnly", "ReadWrite"]),
    ),
    (
        "kind",
        Rule::SupportedIfSet(&["Dedicated", "Managed", "Shared"]),
    ),
];

pub(super) fn azure_disk(at: &Field<'_>, causes: &mut Causes) {
    rule::check(at, AZURE_DISK, causes);
    let uri = at.get("diskURI");
    if !at.has("kind") {
        return;
    }
    // `validateAzureDisk` compares only the beginning, and with it the case: `/Subscriptions/` is refused.
    let (start, form) = if at.text_of("kind") == "Managed" {
        let form = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/\
            microsoft.compute/disks/{disk-id}";
        ("/subscriptions/", form)
    } else {
        let form = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
        ("https://", form)
    };
    if !uri.text().starts_with(start) {
        causes.unsupported(&uri, &[form]);
    }
}

/// Checks the name of a driver of volumes.
pub(in crate::validation) fn check_driver(at: &Field<'_>, causes: &mut Causes) {
    if causes.check_given(at, "") {
        check_driver_name(at, at.text(), causes);
    }
}

/// Checks the name of a driver that belongs to a place.
// `ValidateCSIDriverName`: capitals are allowed although names of CSIDriver objects have none.
pub(in crate::validation) fn check_driver_name(at: &Field<'_>, name: &str, causes: &mut Causes) {
    if name.len() > 63 {
        causes.too_long(at, 63);
    }
    for message in formats::dns_subdomain(&name.to_lowercase()) {
        causes.invalid_as(at, name, &message);
    }
}

pub(super) fn csi_inline(at: &Field<'_>, causes: &mut Causes) {
    check_driver(&at.get("driver"), causes);
    let secret = at.get("nodePublishSecretRef");
    if secret.is_set() && causes.check_given(&secret.get("name"), "") {
        // Go's path lacks the member `nodePublishSecretRef` for a malformed name, but has it for a missing one.
        let shown = at.get("name").with(secret.member("name"));
        causes.check_format(&shown, formats::dns_subdomain);
    }
}

// `nodeStageSecretRef` is not validated by `validateCSIPersistentVolumeSource` either.
const SECRETS: [&str; 4] = [
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
];

pub(super) fn csi_persistent(at: &Field<'_>, causes: &mut Causes) {
    check_driver(&at.get("driver"), causes);
    causes.check_given(&at.get("volumeHandle"), "");
    for member in SECRETS.iter().filter(|member| at.has(member)) {
        let secret = at.get(member);
        causes.check_name(&secret.get("name"), formats::dns_subdomain);
        causes.check_name(&secret.get("namespace"), formats::dns_label);
    }
}
