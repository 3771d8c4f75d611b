//! Labels, annotations and label selectors.

use super::causes::Causes;
use super::field::Field;
use super::formats;

/// Checks the keys and values of labels.
pub(crate) fn check_labels(labels: &Field<'_>, causes: &mut Causes) {
    for (key, value) in labels.entries() {
        // The path is that of the map: the key is what is wrong, and is shown as the value.
        causes.check_format_of(labels, key, formats::qualified_name);
        causes.check_format_of(labels, value.text(), formats::label_value);
    }
}

/// The largest size of all keys and values of annotations together, in bytes.
// `TotalAnnotationSizeLimitB`.
const MOST_BYTES: usize = 256 << 10;

/// Checks the keys of annotations, and how large they are.
pub(crate) fn check_annotations(annotations: &Field<'_>, causes: &mut Causes) {
    let mut size = 0;
    for (key, value) in annotations.entries() {
        size += key.len() + value.text().len();
        for message in formats::annotation_key(key) {
            causes.invalid_as(annotations, key, &message);
        }
    }
    if size > MOST_BYTES {
        causes.too_long(annotations, MOST_BYTES);
    }
}

/// The strictness of checks of label selectors: old invalid ones stay (ratcheting).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SelectorOptions {
    /// Whether values in expressions may be no values of labels.
    pub(crate) any_values: bool,
}

/// Checks a label selector.
pub(crate) fn check_selector(selector: &Field<'_>, options: SelectorOptions, causes: &mut Causes) {
    check_labels(&selector.get("matchLabels"), causes);
    for requirement in selector.get("matchExpressions").items() {
        if !check_operator(&requirement, causes) {
            let at = requirement.get("operator");
            causes.invalid_as(&at, at.text(), "not a valid selector operator");
        }
        check_requirement(&requirement, options, causes);
    }
}

/// Checks the key of a requirement, and its values.
// `ValidateLabelSelectorRequirement`: the operator and how many values it has come before this.
pub(crate) fn check_requirement(
    requirement: &Field<'_>,
    options: SelectorOptions,
    causes: &mut Causes,
) {
    causes.check_format(&requirement.get("key"), formats::qualified_name);
    let values = requirement.get("values");
    for value in values.items().filter(|_| !options.any_values) {
        causes.check_format(&value, formats::label_value);
    }
}

/// Checks that a requirement has values if its operator needs them.
///
/// Returns whether the operator is known.
pub(crate) fn check_operator(requirement: &Field<'_>, causes: &mut Causes) -> bool {
    let values = requirement.get("values");
    match requirement.text_of("operator") {
        "In" | "NotIn" => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.check_given(&values, detail);
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_void() {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.forbidden(&values, detail);
            }
        }
        _ => return false,
    }
    true
}

/// Validates a label selector, and returns whether its rules can be applied.
pub(crate) fn is_selector(selector: &Field<'_>) -> bool {
    let mut causes = Causes::default();
    check_selector(selector, SelectorOptions::default(), &mut causes);
    causes.count() == 0
}

/// Returns whether a label selector matches labels; a missing one matches none.
pub(crate) fn selects(selector: &Field<'_>, labels: &Field<'_>) -> bool {
    let equal = |(key, value): (&str, Field<'_>)| labels.member(key) == value.value();
    let meets = |requirement: Field<'_>| {
        let value = labels.member(requirement.text_of("key"));
        // A label that is missing is null, which is in no list of texts.
        let listed = requirement.get("values").list().contains(value);
        match requirement.text_of("operator") {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => !value.is_null(),
            _ => value.is_null(),
        }
    };
    selector.is_set()
        && selector.get("matchLabels").entries().all(equal)
        && selector.get("matchExpressions").items().all(meets)
}

/// Returns whether a selector has values that are no values of labels.
pub(crate) fn has_odd_values(selector: &Field<'_>) -> bool {
    let expressions = selector.get("matchExpressions");
    let odd = |value: Field<'_>| !formats::label_value(value.text()).is_empty();
    expressions
        .items()
        .any(|each| each.get("values").items().any(odd))
}

/// Returns whether a label selector selects nothing in particular: it has no requirement.
pub(crate) fn is_empty_selector(selector: &Field<'_>) -> bool {
    selector.get("matchLabels").is_void() && selector.get("matchExpressions").is_void()
}
