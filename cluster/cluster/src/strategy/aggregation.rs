//! ClusterRoles whose rules are those of others.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/clusterroleaggregation`.

use lariat_apimachinery::object::{Object, metadata_text};
use lariat_core::{LabelSelector, Labels};
use serde_json::Value;

use super::selector_text;

/// The member of a role that is made of others.
pub(crate) const AGGREGATION_RULE: &str = "aggregationRule";

/// A role that others may be made of.
#[derive(Debug)]
pub(crate) struct RolePart<'a, T> {
    pub(crate) name: &'a str,
    pub(crate) labels: Labels,
    /// The source of its rules, read if they are needed.
    pub(crate) source: T,
}

/// Returns the rules of a role that is made of others, in the order of their names.
///
/// `None` if its rules are its own.
pub(crate) fn aggregated<T>(
    role: &Object,
    parts: &[RolePart<'_, T>],
    rules_of: impl Fn(&T) -> Vec<Value>,
) -> Option<Vec<Value>> {
    let own = metadata_text(role, "name");
    let selectors = role.get(AGGREGATION_RULE)?.get("clusterRoleSelectors");
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors.and_then(Value::as_array)? {
        let selector: LabelSelector = selector_text(selector)?.parse().ok()?;
        let selects = |part: &&RolePart<'_, T>| part.name != own && selector.matches(&part.labels);
        let mut matching: Vec<&RolePart<'_, T>> = parts.iter().filter(selects).collect();
        matching.sort_by_key(|part| part.name);
        for rule in matching.iter().flat_map(|part| rules_of(&part.source)) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    Some(rules)
}
