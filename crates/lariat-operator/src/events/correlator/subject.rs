//! What makes events the same, or similar.

use k8s_openapi::api::core::v1::ObjectReference;

use super::super::record::Pending;

/// Returns what distinguishes an object from others. Its version is no part of it.
pub(super) fn object(about: &ObjectReference) -> String {
    let parts = [
        &about.api_version,
        &about.kind,
        &about.namespace,
        &about.name,
        &about.uid,
    ];
    join(parts.map(Option::as_deref))
}

/// Returns what events have in common that differ in what they say to people only.
pub(super) fn similar(pending: &Pending) -> String {
    let event = &pending.event;
    let parts = [Some(event.type_()), Some(event.reason())];
    format!("{}{}", object(&pending.about), join(parts))
}

/// Returns what events have in common that are about the same thing in all but the note.
pub(super) fn same_but_note(pending: &Pending) -> String {
    let event = &pending.event;
    let related = event.related_object().map(object);
    let parts = [
        pending.about.field_path.as_deref(),
        event.action_name(),
        related.as_deref(),
    ];
    format!("{}{}", similar(pending), join(parts))
}

/// Puts a mark behind each part that none of them has in it, so that `a`, `bc` is not `ab`, `c`.
fn join<const N: usize>(parts: [Option<&str>; N]) -> String {
    let mut joined = String::new();
    for part in parts {
        joined.push_str(part.unwrap_or_default());
        joined.push('\0');
    }
    joined
}
