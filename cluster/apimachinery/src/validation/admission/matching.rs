//! Match constraints of policies and bindings.

use std::collections::HashSet;

use super::rules;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::labels::{self, SelectorOptions};

pub(super) fn check(resources: &Field<'_>, causes: &mut Causes) {
    let policy = resources.get("matchPolicy");
    if policy.is_set() {
        causes.check_supported(&policy, &["Equivalent", "Exact"]);
    } else {
        // Defaults have filled these in, so only an object without defaults lacks them.
        causes.required(&policy, "");
    }
    for name in ["namespaceSelector", "objectSelector"] {
        let selector = resources.get(name);
        if selector.is_set() {
            labels::check_selector(&selector, SelectorOptions::default(), causes);
        } else {
            causes.required(&selector, "");
        }
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in resources.get(list).items() {
            check_names(&rule.get("resourceNames"), causes);
            rules::check(&rule, causes);
        }
    }
}

/// Checks that no rule matches DELETE, which cannot be mutated.
pub(super) fn check_mutable(resources: &Field<'_>, causes: &mut Causes) {
    let rules = resources.get("resourceRules");
    for operation in rules
        .items()
        .flat_map(|rule| rule.get("operations").items())
    {
        // The path of the cause does not have the indexes.
        let at = rules.get("operations").with(operation.value());
        causes.check_supported(&at, &["*", "CONNECT", "CREATE", "UPDATE"]);
    }
}

fn check_names(names: &Field<'_>, causes: &mut Causes) {
    let mut seen = HashSet::new();
    for name in names.items() {
        causes.check_format(&name, formats::path_segment);
        causes.check_unique(&name, &mut seen);
    }
}
