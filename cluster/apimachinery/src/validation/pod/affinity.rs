//! Affinity of Pods: the nodes a Pod may run on, and beside which other Pods.

use std::collections::HashSet;

use super::options::Options;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::labels::{SelectorOptions, check_selector};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn check(affinity: &Field<'_>, options: Options, causes: &mut Causes) {
    let nodes = affinity.get("nodeAffinity");
    if nodes.has(REQUIRED) {
        check_node_selector(&nodes.get(REQUIRED), options.any_node_values, causes);
    }
    for term in nodes.get(PREFERRED).items() {
        check_weight(&term.get("weight"), causes);
        // Values of preferences are not checked.
        check_node_term(&term.get("preference"), true, causes);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = affinity.get(kind);
        for term in affinity.get(REQUIRED).items() {
            check_term(&term, options.affinity, causes);
        }
        for term in affinity.get(PREFERRED).items() {
            check_weight(&term.get("weight"), causes);
            check_term(&term.get("podAffinityTerm"), options.affinity, causes);
        }
    }
}

/// Returns the terms of an affinity to Pods, those that are required first.
pub(super) fn terms<'a>(affinity: &Field<'a>) -> impl Iterator<Item = Field<'a>> {
    let required: Vec<_> = affinity.get(REQUIRED).items().collect();
    let preferred: Vec<_> = affinity.get(PREFERRED).items().collect();
    let preferred = preferred
        .into_iter()
        .map(|term| term.get("podAffinityTerm"));
    required.into_iter().chain(preferred)
}

fn check_weight(at: &Field<'_>, causes: &mut Causes) {
    let weight = at.int().unwrap_or(0);
    if !(1..=100).contains(&weight) {
        causes.invalid_as(at, weight, "must be in the range 1-100");
    }
}

/// Checks which nodes are selected.
pub(in crate::validation) fn check_node_selector(
    selector: &Field<'_>,
    any_values: bool,
    causes: &mut Causes,
) {
    let terms = selector.get("nodeSelectorTerms");
    causes.check_given(&terms, "must have at least one node selector term");
    for term in terms.items() {
        check_node_term(&term, any_values, causes);
    }
}

fn check_node_term(term: &Field<'_>, any_values: bool, causes: &mut Causes) {
    for requirement in term.get("matchExpressions").items() {
        check_label_requirement(&requirement, any_values, causes);
    }
    for requirement in term.get("matchFields").items() {
        check_field_requirement(&requirement, causes);
    }
}

fn check_label_requirement(requirement: &Field<'_>, any_values: bool, causes: &mut Causes) {
    let values = requirement.get("values");
    let operator = requirement.get("operator");
    match operator.text() {
        "In" | "NotIn" => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.check_given(&values, detail);
        }
        "Exists" | "DoesNotExist" if values.is_void() => {}
        "Exists" | "DoesNotExist" => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.forbidden(&values, detail);
        }
        // The number is not parsed here; one that is none matches no node.
        "Gt" | "Lt" if values.list().len() == 1 => {}
        "Gt" | "Lt" => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            causes.required(&values, detail);
        }
        other => causes.invalid_as(&operator, other, "not a valid selector operator"),
    }
    causes.check_format(&requirement.get("key"), formats::qualified_name);
    for value in values.items().filter(|_| !any_values) {
        causes.check_format(&value, formats::label_value);
    }
}

fn check_field_requirement(requirement: &Field<'_>, causes: &mut Causes) {
    let (values, operator) = (requirement.get("values"), requirement.get("operator"));
    match operator.text() {
        "In" | "NotIn" if values.list().len() == 1 => {}
        "In" | "NotIn" => {
            let detail =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            causes.required(&values, detail);
        }
        other => causes.invalid_as(&operator, other, "not a valid selector operator"),
    }
    let key = requirement.get("key");
    if key.text() == "metadata.name" {
        for value in values.items() {
            causes.check_format(&value, formats::dns_subdomain);
        }
    } else {
        causes.invalid_as(&key, key.text(), "not a valid field selector key");
    }
}

fn check_term(term: &Field<'_>, options: SelectorOptions, causes: &mut Causes) {
    for selector in ["labelSelector", "namespaceSelector"] {
        check_selector(&term.get(selector), options, causes);
    }
    for name in term.get("namespaces").items() {
        // Go writes the path in the singular and without an index.
        let at = term.get("namespace").with(name.value());
        causes.check_format(&at, formats::dns_label);
    }
    check_label_keys(term, causes);
    let key = term.get("topologyKey");
    // An empty key is reported twice, also by its form.
    causes.check_given(&key, "can not be empty");
    causes.check_format(&key, formats::qualified_name);
}

/// Checks keys of labels whose values are those of the Pod itself.
pub(super) fn check_label_keys(at: &Field<'_>, causes: &mut Causes) {
    let selector = at.get("labelSelector");
    for member in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = at.get(member);
        if keys.is_void() {
            continue;
        }
        if !selector.is_set() {
            causes.forbidden(&keys, "must not be specified when labelSelector is not set");
            continue;
        }
        for key in keys.items() {
            causes.check_format(&key, formats::qualified_name);
        }
    }
    let (matched, mismatched) = (at.get("matchLabelKeys"), at.get("mismatchLabelKeys"));
    let labels = selector.get("matchLabels");
    let mut seen: HashSet<&str> = labels.entries().map(|(key, _)| key).collect();
    for expression in selector.get("matchExpressions").items() {
        let key = expression.text_of("key");
        // The last of equal keys counts.
        let place = matched.list().iter().rposition(|each| each == key);
        if let Some(place) = place.filter(|_| seen.contains(key)) {
            let at = at.item_as(place, expression.member("key"));
            causes.invalid(&at, "exists in both matchLabelKeys and labelSelector");
        }
        seen.insert(key);
    }
    for key in matched
        .items()
        .filter(|key| mismatched.list().contains(key.value()))
    {
        causes.invalid(&key, "exists in both matchLabelKeys and mismatchLabelKeys");
    }
}
