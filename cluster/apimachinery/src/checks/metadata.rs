//! The rules for metadata that hold wherever it is, also inside of other objects.
//!
//! Source: `k8s.io/apimachinery/pkg/api/validation`.

use serde_json::Value;

use super::causes::Causes;
use super::field::Field;
use super::{formats, labels};
use crate::cause::StatusCause;
use crate::go_text;
use crate::object::Object;

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

/// Checks who owns an object; the paths of causes do not have the index.
pub(crate) fn check_owners(owners: &Field<'_>, causes: &mut Causes) {
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
pub(crate) const STANDARD_FINALIZERS: &[&str] = &["kubernetes", ORPHAN, FOREGROUND];

pub(crate) fn check_finalizers(finalizers: &Field<'_>, causes: &mut Causes) {
    for name in finalizers.items() {
        causes.check_format_of(finalizers, name.text(), formats::qualified_name);
    }
    let has = |name: &str| finalizers.list().contains(&Value::from(name));
    if has(ORPHAN) && has(FOREGROUND) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        causes.invalid(finalizers, &detail);
    }
}
