//! The spans of lists and watches.

use lariat_core::{Gvk, ResourceVersion};
use tracing::Span;
use tracing::field::{self, Empty};

/// Returns the span of a list.
pub(super) fn list(kind: &Gvk, namespace: Option<&str>) -> Span {
    tracing::info_span!(
        target: "lariat::list",
        "list",
        %kind,
        namespace,
        objects = Empty,
        end = Empty,
    )
}

/// Returns the span of a watch from a version, or of a watch list.
pub(super) fn watch(kind: &Gvk, namespace: Option<&str>, since: Option<&ResourceVersion>) -> Span {
    tracing::info_span!(
        target: "lariat::watch",
        "watch",
        %kind,
        namespace,
        since = since.map(field::display),
        initial = since.is_none().then_some(true),
        objects = Empty,
        events = Empty,
        end = Empty,
    )
}

/// Records the number of events that were received, in the current span.
pub(super) fn received(events: u64) {
    Span::current().record("events", events);
}
