//! The keys under which events are equal, similar, or about the same object.

use k8s_openapi::api::core::v1::ObjectReference;

use super::super::record::Pending;

/// Returns the key of an object, without its resource version.
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

/// Returns the key of events with the same object, type and reason.
pub(super) fn similar(pending: &Pending) -> String {
    let event = &pending.event;
    let parts = [Some(event.type_()), Some(event.reason())];
    format!("{}{}", object(&pending.about), join(parts))
}

/// Returns the key of events that differ at most in the note.
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

/// Joins parts with a separator that none of them contains.
///
/// Without it, `a` and `bc` would read like `ab` and `c`.
fn join<const N: usize>(parts: [Option<&str>; N]) -> String {
    let mut joined = String::new();
    for part in parts {
        joined.push_str(part.unwrap_or_default());
        joined.push('\0');
    }
    joined
}
