//! Roles, and bindings of them.

use super::causes::Causes;
use super::context::Context;
use super::field::Field;
use super::formats;
use super::labels::{self, SelectorOptions};
use super::structs::{self, Members, Shape};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(context: &Context<'_>, causes: &mut Causes) {
    for rule in context.get("rules").items() {
        check_rule(&rule, true, causes);
    }
}

// `ValidateClusterRole`. A missing aggregation rule is fine, an empty one (`aggregationRule: {}`) is not.
pub(super) fn cluster_role(context: &Context<'_>, causes: &mut Causes) {
    for rule in context.get("rules").items() {
        check_rule(&rule, false, causes);
    }
    let aggregation = context.get("aggregationRule");
    if !aggregation.is_set() {
        return;
    }
    let selectors = aggregation.get("clusterRoleSelectors");
    let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
    causes.check_given(&selectors, detail);
    let old = context.old("aggregationRule");
    let old = old.map(|old| old.get("clusterRoleSelectors"));
    let mut old = old.iter().flat_map(Field::items);
    let options = SelectorOptions {
        // Ratcheting (`hasInvalidLabelValueInLabelSelector`): if any old selector had an invalid value, all new ones
        // may.
        any_values: old.any(|selector| labels::has_odd_values(&selector)),
    };
    for selector in selectors.items() {
        labels::check_selector(&selector, options, causes);
        if !labels::is_selector(&selector) {
            // Go overwrites its variable with the result of the failed conversion, so the message shows a nil
            // selector.
            causes.invalid_struct(&selector, "null", "invalid label selector.");
        }
    }
}

// `ValidatePolicyRule`. It knows neither the verbs nor the groups, so a typo there grants nothing, silently.
fn check_rule(rule: &Field<'_>, is_namespaced: bool, causes: &mut Causes) {
    causes.check_given(&rule.get("verbs"), "verbs must contain at least one value");
    let urls = rule.get("nonResourceURLs");
    let about_resources = ["apiGroups", "resources", "resourceNames"];
    // Go looks at the URLs first and returns; a rule with URLs is never asked for groups or resources.
    if urls.is_void() {
        let detail = "resource rules must supply at least one api group";
        causes.check_given(&rule.get("apiGroups"), detail);
        let detail = "resource rules must supply at least one resource";
        causes.check_given(&rule.get("resources"), detail);
        return;
    }
    if is_namespaced {
        causes.invalid(&urls, "namespaced rules cannot apply to non-resource URLs");
    }
    if about_resources.iter().any(|name| !rule.get(name).is_void()) {
        let detail = "rules cannot apply to both regular resources and non-resource URLs";
        causes.invalid(&urls, detail);
    }
}

pub(super) fn role_binding(context: &Context<'_>, causes: &mut Causes) {
    check_binding(context, &["Role", "ClusterRole"], true, causes);
}

pub(super) fn cluster_role_binding(context: &Context<'_>, causes: &mut Causes) {
    check_binding(context, &["ClusterRole"], false, causes);
}

/// The form of a reference to a role in messages.
const ROLE: Members = &[
    ("apiGroup", "APIGroup", Shape::Text),
    ("kind", "Kind", Shape::Text),
    ("name", "Name", Shape::Text),
];

// `ValidateRoleBinding` and `ValidateClusterRoleBinding`, which differ in the kinds of roles and in the subjects.
fn check_binding(context: &Context<'_>, kinds: &[&str], is_namespaced: bool, causes: &mut Causes) {
    let role = context.get("roleRef");
    let (group, name) = (role.get("apiGroup"), role.get("name"));
    // Go compares with `!=`, so an empty group or kind is "unsupported" and not "required".
    causes.check_plain(&group, &[GROUP]);
    causes.check_plain(&role.get("kind"), kinds);
    // Names in RBAC may have colons and capitals (`system:node`): only `/`, `%`, `.` and `..` are refused.
    causes.check_name(&name, formats::path_segment);
    for subject in context.get("subjects").items() {
        check_subject(&subject, is_namespaced, causes);
    }
    // The role is fixed so that one who may edit subjects cannot raise what the binding grants.
    let Some(old) = context.old("roleRef") else {
        return;
    };
    let differs = |(name, ..): &(&str, &str, Shape)| old.text_of(name) != role.text_of(name);
    if ROLE.iter().any(differs) {
        let shown = structs::shown(role.value(), ROLE);
        causes.invalid_struct(&role, &shown, "cannot change roleRef");
    }
}

// `ValidateRoleBindingSubject`.
fn check_subject(subject: &Field<'_>, is_namespaced: bool, causes: &mut Causes) {
    let (name, group) = (subject.get("name"), subject.get("apiGroup"));
    causes.check_given(&name, "");
    match subject.text_of("kind") {
        "ServiceAccount" => {
            if !name.is_void() {
                causes.check_format(&name, formats::dns_subdomain);
            }
            if !group.is_void() {
                causes.check_plain(&group, &[""]);
            }
            // In a RoleBinding a missing namespace means that of the binding; a ClusterRoleBinding has none to offer.
            if !is_namespaced {
                causes.check_given(&subject.get("namespace"), "");
            }
        }
        // The default of the group was filled in by kind before; names of users and groups may be any text.
        "User" | "Group" => causes.check_plain(&group, &[GROUP]),
        _ => {
            let kinds = ["ServiceAccount", "User", "Group"];
            causes.check_plain(&subject.get("kind"), &kinds);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::validation::testing::{check_created, check_updated};

    const VERSION: &str = "rbac.authorization.k8s.io/v1";

    #[test]
    fn rules_are_about_resources_or_paths() {
        check_created(
            VERSION,
            "Role",
            json!({"rules": [{"nonResourceURLs": ["/a"], "apiGroups": [""]}, {"verbs": ["get"]}]}),
            &[
                "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: namespaced rules cannot apply",
                "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: rules cannot apply to both",
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[1].resources: Required value: resource rules must supply at least one resource",
            ],
        );
    }

    #[test]
    fn bindings_name_a_role_for_good() {
        let role =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"});
        let mut other = role.clone();
        other["name"] = "b".into();
        check_updated(
            VERSION,
            "ClusterRoleBinding",
            &json!({"roleRef": role}),
            json!({"roleRef": other, "subjects": [{"kind": "ServiceAccount", "name": "a"}]}),
            &[
                "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\
                 \"Kind\":\"ClusterRole\",\"Name\":\"b\"}: cannot change roleRef",
                "subjects[0].namespace: Required value",
            ],
        );
    }
}
