//! Specs of PersistentVolumeClaims.

use super::causes::Causes;
use super::field::Field;
use super::formats;
use super::labels::{self, SelectorOptions, check_selector};
use super::resources;
use super::rule::{self, Rule, Rules};
use crate::object::Object;

/// Ratcheting: checks that an update need not pass if the old object does not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options {
    pub(crate) selector: SelectorOptions,
    pub(crate) any_group: bool,
}

/// The ways in which nodes may use a volume.
const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// Checks how nodes may use a volume.
pub(crate) fn check_access_modes(modes: &Field<'_>, detail: &str, causes: &mut Causes) {
    causes.check_given(modes, detail);
    for mode in modes
        .items()
        .filter(|mode| !ACCESS_MODES.contains(&mode.text()))
    {
        // The path is that of the list, without an index.
        causes.unsupported(&modes.with(mode.value()), ACCESS_MODES);
    }
    let known = modes
        .items()
        .filter(|mode| ACCESS_MODES.contains(&mode.text()));
    let (single, others): (Vec<_>, Vec<_>) = known.partition(|m| m.text() == "ReadWriteOncePod");
    if !single.is_empty() && !others.is_empty() {
        let detail = "may not use ReadWriteOncePod with other access modes";
        causes.forbidden(modes, detail);
    }
}

const SPEC: Rules = &[
    ("storageClassName", Rule::Text(formats::dns_subdomain)),
    ("volumeMode", Rule::SupportedIfSet(&["Block", "Filesystem"])),
];

/// Checks the spec of a claim, or of a template of claims.
pub(crate) fn check_spec(spec: &Field<'_>, options: Options, causes: &mut Causes) {
    let detail = "at least 1 access mode is required";
    // `ValidatePersistentVolumeClaimSpec`.
    check_access_modes(&spec.get("accessModes"), detail, causes);
    check_selector(&spec.get("selector"), options.selector, causes);
    let requests = spec.get("resources").get("requests");
    // Go writes the path as a key of `resources`, without `requests`.
    let storage = spec.get("resources").key("storage");
    let storage = storage.with(requests.member("storage"));
    if !storage.is_set() {
        causes.required(&storage, "");
    } else if resources::check_positive(&storage, causes) {
        resources::check_amount(&storage, "storage", causes);
    }
    rule::check(spec, SPEC, causes);
    check_sources(spec, options, causes);
    let attributes = spec.get("volumeAttributesClassName");
    if !attributes.is_void() {
        causes.check_format(&attributes, formats::dns_subdomain);
    }
}

/// Checks the data sources of a volume.
fn check_sources(spec: &Field<'_>, options: Options, causes: &mut Causes) {
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    for at in [&source, &reference].into_iter().filter(|at| at.is_set()) {
        rule::check(at, &[("name kind", Rule::Given)], causes);
        let group = at.get("apiGroup");
        // `validateDataSource`: an empty group is the core group, in which only a claim can be a source.
        if group.is_void() && at.text_of("kind") != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            causes.invalid_as(at, at.text_of("kind"), detail);
        }
        if !group.is_void() && !options.any_group {
            causes.check_format(&group, formats::dns_subdomain);
        }
    }
    let namespace = reference.get("namespace");
    if !namespace.is_void() {
        causes.check_format(&namespace, formats::dns_label);
    }
    if !source.is_set() || !reference.is_set() {
        return;
    }
    if !namespace.is_void() {
        let detail = "may not be specified when dataSourceRef.namespace is specified";
        // The cause is about the spec as a whole, of which Go shows nothing.
        causes.invalid_as(spec, Object::new(), detail);
        return;
    }
    let same = ["apiGroup", "kind", "name"]
        .iter()
        .all(|member| source.member(member) == reference.member(member));
    if !same {
        causes.invalid_as(spec, Object::new(), "must match dataSourceRef");
    }
}

/// Checks the template of a claim that lives with its Pod.
pub(crate) fn check_ephemeral(at: &Field<'_>, causes: &mut Causes) {
    let template = at.get("volumeClaimTemplate");
    if !template.is_set() {
        causes.required(&template, "");
        return;
    }
    check_template_metadata(&template.get("metadata"), causes);
    check_spec(&template.get("spec"), Options::default(), causes);
}

/// The members of metadata that a template has not, in the order of Go's struct.
const FIXED: [&str; 13] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Checks a claim template's metadata: only labels and annotations.
pub(super) fn check_template_metadata(metadata: &Field<'_>, causes: &mut Causes) {
    labels::check_annotations(&metadata.get("annotations"), causes);
    labels::check_labels(&metadata.get("labels"), causes);
    for member in FIXED {
        // An empty member is the zero value of Go's struct, and not set.
        if metadata.has(member) {
            // Go's name of the member, with a small letter.
            let shown = if member == "uid" { "uID" } else { member };
            causes.forbidden(&metadata.get(shown), "cannot be set");
        }
    }
}
