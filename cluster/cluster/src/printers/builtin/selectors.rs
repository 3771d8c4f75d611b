//! Labels and label selectors, as cells have them.

use lariat_apimachinery::selector::selector_text;
use serde_json::Value;

use crate::printers::source::Row;

/// Returns labels, with `=` between name and value.
///
/// As `Set.String` they are sorted with it, so `a1=` comes before `a=`.
pub(super) fn labels(labels: Row<'_>) -> String {
    let labels = labels.object.as_object().into_iter().flatten();
    let label =
        |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or_default());
    let mut labels: Vec<String> = labels.map(label).collect();
    labels.sort_unstable();
    labels.join(",")
}

/// Returns a label selector, empty if it selects all or nothing.
pub(super) fn selector(selector: Row<'_>) -> String {
    selector_text(selector.object).unwrap_or_default()
}
