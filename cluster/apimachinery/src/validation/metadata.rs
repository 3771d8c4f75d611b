//! The metadata of all kinds.
//!
//! Source: `ValidateObjectMeta` in `k8s.io/apimachinery/pkg/api/validation` and
//! `k8s.io/kubernetes/pkg/apis/core/validation`.

use crate::cause::StatusCause;
use crate::checks::causes::Causes;
use crate::checks::field::Field;
use crate::checks::metadata::{STANDARD_FINALIZERS, check_finalizers, check_owners};
use crate::checks::{addresses, formats, labels};
use crate::kinds::Resource;
use crate::names::NameRule;
use crate::object::Object;

/// Validates the metadata of an object, and on updates the change to it.
///
/// ```
/// use lariat_apimachinery::kinds::{Kinds, TableId};
/// use lariat_apimachinery::validation::validate_metadata;
/// use serde_json::json;
///
/// let catalog = Kinds::new(|_| TableId(0)).catalog();
/// let pods = catalog.resource("", "v1", "pods").expect("it is built in");
/// let pod = json!({"metadata": {"name": "Web", "namespace": "shop"}});
/// let causes = validate_metadata(pods, pod.as_object().expect("an object"), None);
/// assert!(causes[0].text().starts_with("metadata.name: Invalid value"));
/// ```
#[must_use]
pub fn validate_metadata(
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
) -> Vec<StatusCause> {
    let metadata = Field::of(object, "metadata");
    let mut causes = Causes::default();
    if old.is_none() || revalidates(resource) {
        // Its validation checks the name without the prefix that it may have come from.
        let needs_prefix = resource.kind != "ReplicationController";
        match special(resource) {
            Some(check) => check(&metadata, &mut causes),
            None => check_name(&metadata, resource.rules.names, needs_prefix, &mut causes),
        }
    }
    if old.is_some() {
        let prefix = metadata.get("generateName");
        // `ValidateObjectMetaUpdate` does not know the rule of the kind, and applies the one for all.
        causes.check_format(&prefix, formats::path_segment_prefix);
    }
    if old.is_none() {
        causes.check_not_negative(&metadata.get("generation"));
    }
    labels::check_labels(&metadata.get("labels"), &mut causes);
    labels::check_annotations(&metadata.get("annotations"), &mut causes);
    check_owners(&metadata.get("ownerReferences"), &mut causes);
    let finalizers = metadata.get("finalizers");
    check_finalizers(&finalizers, &mut causes);
    let old_event = resource.group.is_empty() && resource.kind == "Event";
    let is_generic = GENERIC.contains(&resource.group.as_str()) || old_event;
    // `ValidateFinalizerName` of core is stricter than that of the generic server.
    if !resource.rules.custom && !is_generic {
        check_plain(&finalizers, &mut causes);
    }
    causes.into_list()
}

/// Groups whose metadata is checked by the rules of all objects alone.
///
/// Other groups have further rules in `k8s.io/kubernetes`.
const GENERIC: [&str; 6] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "policy",
];

/// Returns whether updates of a kind are checked like creations.
///
/// For other kinds only the changes are checked.
// A matter of whether `ValidateUpdate` of a kind calls its `Validate`, which has no system to it.
fn revalidates(resource: &Resource) -> bool {
    let kind = resource.kind.as_str();
    match resource.group.as_str() {
        "" => matches!(
            kind,
            "ConfigMap"
                | "LimitRange"
                | "Namespace"
                | "Node"
                | "Secret"
                | "ServiceAccount"
                | "Endpoints"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "Pod"
        ),
        "apps" => kind == "ControllerRevision",
        "batch" => kind == "Job",
        "networking.k8s.io" => matches!(kind, "Ingress" | "IngressClass" | "IPAddress"),
        "resource.k8s.io" => matches!(kind, "DeviceClass" | "ResourceClaim"),
        "flowcontrol.apiserver.k8s.io" => true,
        "storage.k8s.io" => kind != "CSIDriver",
        "admissionregistration.k8s.io"
        | "certificates.k8s.io"
        | "discovery.k8s.io"
        | "node.k8s.io"
        | "rbac.authorization.k8s.io" => true,
        _ => false,
    }
}

/// Checks a name, and the beginning that it may have been generated from.
fn check_name(metadata: &Field<'_>, rule: NameRule, needs_prefix: bool, causes: &mut Causes) {
    let (name, prefix) = (metadata.get("name"), metadata.get("generateName"));
    if needs_prefix && !prefix.is_void() {
        let text = prefix.text();
        let broken = match rule {
            NameRule::PathSegment => formats::path_segment_prefix(text),
            // A prefix usually ends in a dash, which no name may.
            NameRule::Label => formats::dns_label(&formats::masked(text)),
            NameRule::Subdomain => formats::dns_subdomain(&formats::masked(text)),
        };
        for message in broken {
            causes.invalid(&prefix, &message);
        }
    }
    if causes.check_given(&name, "name or generateName is required") {
        let format = match rule {
            NameRule::PathSegment => formats::path_segment,
            NameRule::Label => formats::dns_label,
            NameRule::Subdomain => formats::dns_subdomain,
        };
        causes.check_format(&name, format);
    }
}

/// Returns how names of a kind are checked whose rule is none of the usual ones.
fn special(resource: &Resource) -> Option<fn(&Field<'_>, &mut Causes)> {
    match (resource.group.as_str(), resource.kind.as_str()) {
        _ if resource.rules.custom => None,
        ("networking.k8s.io", "IPAddress") => Some(check_ip_name),
        ("resource.k8s.io", "DeviceClass") => Some(check_class_name),
        _ => None,
    }
}

/// Checks a name that is an address in its canonical form.
// `ValidateIPAddressName`, which does not care whether it gets a name or the beginning of one.
fn check_ip_name(metadata: &Field<'_>, causes: &mut Causes) {
    let (name, prefix) = (metadata.get("name"), metadata.get("generateName"));
    if !prefix.is_void() {
        addresses::check_canonical_ip(&prefix, causes);
    }
    if causes.check_given(&name, "name or generateName is required") {
        addresses::check_canonical_ip(&name, causes);
    }
}

/// Checks the name of a DeviceClass.
// `ValidateObjectMetaWithOpts` does not look at what names are generated from.
fn check_class_name(metadata: &Field<'_>, causes: &mut Causes) {
    let name = metadata.get("name");
    if causes.check_given(&name, "name or generateName is required") {
        causes.check_format(&name, formats::long_name);
    }
}

/// Checks that a finalizer has a domain, unless built-in kinds know it.
fn check_plain(finalizers: &Field<'_>, causes: &mut Causes) {
    for name in finalizers.items() {
        let text = name.text();
        if !text.contains('/') && !STANDARD_FINALIZERS.contains(&text) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            causes.invalid(&name, detail);
        }
    }
}
