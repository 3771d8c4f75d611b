//! ClusterRoles whose rules are those of others.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/clusterroleaggregation`.

use lariat_apimachinery::object::{Object, metadata_text};
use lariat_core::{LabelSelector, Labels};
use serde_json::Value;

use super::selector::selector_text;

/// Returns the rules of a role that is made of others, in the order of their names.
///
/// `None` if its rules are its own.
pub(crate) fn aggregated<'a>(
    role: &Object,
    others: impl Iterator<Item = &'a Object> + Clone,
) -> Option<Vec<Value>> {
    let selectors = role.get("aggregationRule")?.get("clusterRoleSelectors");
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors.and_then(Value::as_array)? {
        let selector: LabelSelector = selector_text(selector)?.parse().ok()?;
        let own = metadata_text(role, "name");
        let mut matching: Vec<&Object> = others
            .clone()
            .filter(|other| metadata_text(other, "name") != own && selector.matches(&labels(other)))
            .collect();
        matching.sort_by_key(|other| metadata_text(other, "name"));
        let each = matching
            .iter()
            .filter_map(|other| other.get("rules")?.as_array());
        for rule in each.flatten() {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    Some(rules)
}

fn labels(object: &Object) -> Labels {
    let labels = object
        .get("metadata")
        .and_then(|metadata| metadata.get("labels"));
    let members = labels.and_then(Value::as_object).into_iter().flatten();
    members
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect()
}
