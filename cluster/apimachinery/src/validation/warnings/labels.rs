//! Deprecated labels of nodes.

use super::collected::Warnings;
use crate::validation::field::Field;
use crate::validation::formats;

// Follows `deprecatedNodeLabels` in `pkg/api/node`.
const DEPRECATED: &[(&str, &str)] = &[
    (
        "beta.kubernetes.io/arch",
        r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#,
    ),
    (
        "beta.kubernetes.io/os",
        r#"deprecated since v1.14; use "kubernetes.io/os" instead"#,
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#,
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#,
    ),
    (
        "beta.kubernetes.io/instance-type",
        r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#,
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        r#"use "node-role.kubernetes.io/control-plane" instead"#,
    ),
];

/// Returns the replacement of a label, if it is deprecated.
pub(super) fn deprecated(label: &str) -> Option<&'static str> {
    let mut all = DEPRECATED.iter();
    all.find(|(name, _)| *name == label).map(|(_, text)| *text)
}

/// Warns of a member that names a deprecated label.
pub(super) fn check_key(at: &Field<'_>, warnings: &mut Warnings) {
    if let Some(text) = deprecated(at.text()) {
        // The label is repeated in the message because the path ends in `key`; where the path ends in the label it is
        // not.
        warnings.add_at(at, format_args!("{} is {text}", at.text()));
    }
}

/// Checks the expressions of a node selector term, with `values` also the values.
// `GetWarningsForNodeSelectorTerm`. Values with a wrong form are refused in required terms, but accepted in preferred
// ones.
pub(super) fn check_term(term: &Field<'_>, values: bool, warnings: &mut Warnings) {
    for expression in term.get("matchExpressions").items() {
        check_key(&expression.get("key"), warnings);
        let compared = expression.get("values");
        for value in compared.items().filter(|_| values) {
            for wrong in formats::label_value(value.text()) {
                warnings.add_at(&value, format_args!("{} is invalid, {wrong}", value.text()));
            }
        }
    }
}
