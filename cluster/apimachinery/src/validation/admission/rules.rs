//! Rules of webhooks and policies: the requests they match.

use crate::validation::causes::Causes;
use crate::validation::field::Field;

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

pub(super) fn check(rule: &Field<'_>, causes: &mut Causes) {
    let operations = rule.get("operations");
    // `validateRuleWithOperations`, then `validateRule` for the rest.
    causes.check_given(&operations, "");
    check_alone(&operations, "operations", causes);
    for operation in operations.items() {
        causes.check_supported(&operation, OPERATIONS);
    }
    let (groups, versions) = (rule.get("apiGroups"), rule.get("apiVersions"));
    causes.check_given(&groups, "");
    check_alone(&groups, "API groups", causes);
    causes.check_given(&versions, "");
    check_alone(&versions, "API versions", causes);
    for version in versions.items() {
        causes.check_given(&version, "");
    }
    check_resources(&rule.get("resources"), causes);
    let scope = rule.get("scope");
    if scope.is_set() {
        causes.check_supported(&scope, &["*", "Cluster", "Namespaced"]);
    }
}

/// Checks that nothing stands beside a wildcard.
fn check_alone(list: &Field<'_>, what: &str, causes: &mut Causes) {
    if list.list().len() > 1 && list.items().any(|each| each.text() == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        causes.invalid(list, &detail);
    }
}

fn check_resources(list: &Field<'_>, causes: &mut Causes) {
    causes.check_given(list, "");
    let (mut with_any_part, mut with_part) = (Vec::new(), Vec::new());
    let (mut any, mut any_whole, mut whole) = (false, false, false);
    for resource in list.items() {
        let text = resource.text();
        if !causes.check_given(&resource, "") {
            continue;
        }
        any |= text == "*/*";
        any_whole |= text == "*";
        let Some((name, part)) = text.split_once('/') else {
            // Set by the last resource without a subresource and not by any of them, as in `validateResources`.
            whole = text != "*";
            continue;
        };
        // Only what stands before it in the list is known here, so the order of the list matters.
        if with_any_part.contains(&name) {
            let detail = format!("if '{name}/*' is present, must not specify {text}");
            causes.invalid(&resource, &detail);
        }
        if with_part.contains(&part) {
            let detail = format!("if '*/{part}' is present, must not specify {text}");
            causes.invalid(&resource, &detail);
        }
        if part == "*" {
            with_any_part.push(name);
        }
        if name == "*" {
            with_part.push(part);
        }
    }
    if list.list().len() > 1 && any {
        causes.invalid(
            list,
            "if '*/*' is present, must not specify other resources",
        );
    }
    if any_whole && whole {
        let detail = "if '*' is present, must not specify other resources without subresources";
        causes.invalid(list, detail);
    }
}
