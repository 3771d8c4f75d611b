//! Labels and label selectors, as cells have them.

use lariat_apimachinery::selector::selector_text;
use serde_json::Value;

use crate::printers::source::Row;

/// Returns labels, with `=` between name and value.
pub(super) fn labels(labels: Row<'_>) -> String {
    let labels = labels.object.as_object().into_iter().flatten();
    let label =
        |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or_default());
    let labels: Vec<String> = labels.map(label).collect();
    labels.join(",")
}

/// Returns a label selector, empty if it selects all or nothing.
pub(super) fn selector(selector: Row<'_>) -> String {
    selector_text(selector.object).unwrap_or_default()
}
