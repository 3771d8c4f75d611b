//! Cells that refer to other objects.

use lariat_apimachinery::kinds::qualified;

use crate::printers::source::Row;

/// Returns `Kind/name`.
pub(super) fn kind_and_name(object: Row<'_>) -> String {
    format!("{}/{}", object.text("/kind"), object.text("/name"))
}

/// Returns `Kind.group/name`.
pub(super) fn kind_group_and_name(object: Row<'_>) -> String {
    let kind = qualified(object.text("/kind"), object.text("/apiGroup"));
    format!("{kind}/{}", object.text("/name"))
}

/// Returns `namespace/name`, empty without an object.
pub(super) fn namespace_and_name(object: Row<'_>) -> String {
    if !object.object.is_object() {
        return String::new();
    }
    format!("{}/{}", object.text("/namespace"), object.text("/name"))
}

/// Returns `namespace/name`, or the name of parameters without a namespace.
pub(super) fn parameters(reference: Row<'_>) -> String {
    match reference.text("/namespace") {
        "" => reference.text("/name").to_owned(),
        namespace => format!("{namespace}/{}", reference.text("/name")),
    }
}

/// Returns `group/version/Kind`, empty without a kind.
pub(super) fn version_and_kind(object: Row<'_>) -> String {
    match object.text("/kind") {
        "" => String::new(),
        kind => format!("{}/{kind}", object.text("/apiVersion")),
    }
}

/// Returns `kind.group/name` of an owner reference.
pub(super) fn owner(reference: Row<'_>) -> String {
    let version = reference.text("/apiVersion").split_once('/');
    let (group, _) = version.unwrap_or_default();
    let kind = qualified(reference.text("/kind"), group).to_lowercase();
    format!("{kind}/{}", reference.text("/name"))
}

/// Returns `resource.group/namespace/name`, without the parts that are empty.
pub(super) fn parent(reference: Row<'_>) -> String {
    let resource = qualified(reference.text("/resource"), reference.text("/group"));
    let parts = ["/namespace", "/name"].map(|part| reference.text(part));
    let present = parts.into_iter().filter(|part| !part.is_empty());
    present.fold(resource, |text, part| format!("{text}/{part}"))
}
