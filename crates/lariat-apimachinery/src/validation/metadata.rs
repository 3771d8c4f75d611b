//! The metadata of all kinds.
//!
//! Source: `ValidateObjectMeta` in `k8s.io/apimachinery/pkg/api/validation` and `k8s.io/kubernetes/pkg/apis/core/validation`.

use serde_json::Value;

use super::causes::Causes;
use super::field::Field;
use super::{addresses, formats, labels};
use crate::cause::StatusCause;
use crate::go_text;
use crate::kinds::Resource;
use crate::names::NameRule;
use crate::object::Object;

/// Validates the metadata of an object, and on updates the change to it.
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

/// Validates the metadata of a resource that is a part of another one.
// `validateEmbeddedResource`.
pub(crate) fn validate_embedded(metadata: &Value) -> Vec<StatusCause> {
    let object = Object::from_iter([("metadata".to_owned(), metadata.clone())]);
    let metadata = Field::of(&object, "metadata");
    let mut causes = Causes::default();
    let given = |name, format, causes: &mut Causes| {
        let field = metadata.get(name);
        if !field.is_void() {
            causes.check_format(&field, format);
        }
    };
    given("generateName", formats::path_segment_prefix, &mut causes);
    given("name", formats::path_segment, &mut causes);
    given("namespace", formats::dns_label, &mut causes);
    causes.check_not_negative(&metadata.get("generation"));
    labels::check_labels(&metadata.get("labels"), &mut causes);
    check_owners(&metadata.get("ownerReferences"), &mut causes);
    labels::check_annotations(&metadata.get("annotations"), &mut causes);
    check_finalizers(&metadata.get("finalizers"), &mut causes);
    for entry in metadata.get("managedFields").items() {
        let (operation, kind) = (entry.get("operation"), entry.get("fieldsType"));
        if !matches!(operation.text(), "Apply" | "Update") {
            causes.invalid_as(&operation, operation.text(), "must be `Apply` or `Update`");
        }
        if !matches!(kind.text(), "" | "FieldsV1") {
            causes.invalid(&kind, "must be `FieldsV1`");
        }
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

/// Checks who owns an object; the paths of causes do not have the index.
fn check_owners(owners: &Field<'_>, causes: &mut Causes) {
    let mut controller: Option<Field<'_>> = None;
    for owner in owners.items() {
        // See `ValidateOwnerReferences`, which passes the path of the list on.
        check_owner(&owners.with(owner.value()), causes);
        if !owner.is_true("controller") {
            continue;
        }
        let Some(first) = &controller else {
            controller = Some(owner);
            continue;
        };
        let name =
            |owner: &Field<'_>| format!("{}/{}", owner.text_of("kind"), owner.text_of("name"));
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
             {} and {}",
            name(first),
            name(&owner)
        );
        let shown: Vec<String> = owners.list().iter().map(shown_owner).collect();
        causes.invalid_struct(owners, &format!("[{}]", shown.join(",")), &detail);
    }
}

/// Shows a reference as Go writes it, with its members in their order there.
fn shown_owner(owner: &Value) -> String {
    let members = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let given = members.iter().filter_map(|name| {
        let value = owner.get(*name).filter(|value| !value.is_null())?;
        Some(format!("\"{name}\":{}", go_text::json(value)))
    });
    format!("{{{}}}", given.collect::<Vec<_>>().join(","))
}

fn check_owner(owner: &Field<'_>, causes: &mut Causes) {
    let api_version = owner.text_of("apiVersion");
    let (group, version) = match api_version.split_once('/') {
        // A version that cannot be parsed counts as an empty one, as in Go, where the error is dropped.
        Some((_, version)) if version.contains('/') => ("", ""),
        Some((group, version)) => (group, version),
        None => ("", api_version),
    };
    if version.is_empty() {
        let at = owner.get("apiVersion");
        causes.invalid_as(&at, api_version, "version must not be empty");
    }
    for member in ["kind", "name", "uid"] {
        let at = owner.get(member);
        if at.is_void() {
            causes.invalid_as(&at, "", "must not be empty");
        }
    }
    // An Event ends by time, so what it owned would end with it.
    if (group, version, owner.text_of("kind")) == ("", "v1", "Event") {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        causes.invalid_struct(owner, &shown_owner(owner.value()), detail);
    }
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The finalizers without a domain that the API server itself knows.
pub(super) const STANDARD_FINALIZERS: &[&str] = &["kubernetes", ORPHAN, FOREGROUND];

fn check_finalizers(finalizers: &Field<'_>, causes: &mut Causes) {
    for name in finalizers.items() {
        causes.check_format_of(finalizers, name.text(), formats::qualified_name);
    }
    let has = |name: &str| finalizers.list().contains(&Value::from(name));
    if has(ORPHAN) && has(FOREGROUND) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        causes.invalid(finalizers, &detail);
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
