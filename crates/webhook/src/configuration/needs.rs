//! The permissions to apply the configurations, and to keep the certificates.

use lariat_core::ObjectKey;
use lariat_operator::Rule;

use super::configurations::Described;
use crate::endpoint::Endpoint;
use crate::rules::Role;

const GROUP: &str = "admissionregistration.k8s.io";
const POLICIES: [&str; 2] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
];

/// Returns the permissions for applying the configurations, and for the Secret.
///
/// Everything is restricted to the names of this program's objects, but for creations, for which Kubernetes has no
/// names.
pub(crate) fn needs(
    described: &Described,
    endpoint: Option<&Endpoint>,
    secret: Option<&ObjectKey>,
) -> Vec<Rule> {
    let mut rules = Vec::new();
    if let Some(endpoint) = endpoint {
        rules.extend(of_configurations(described));
        rules.extend(of_policies(described));
        if !described.definitions.is_empty() {
            // No permission to create: the CRD is installed by another part of the program.
            let rule = because(Rule::on(
                "apiextensions.k8s.io",
                "customresourcedefinitions",
            ));
            let names = described.definitions.iter().cloned();
            rules.push(rule.named(names).verbs(["get", "patch"]));
        }
        if let Some(service) = endpoint.applied_service() {
            let namespace = service.namespace().unwrap_or("default");
            let of_service = applied("", "services", service.name());
            rules.extend(of_service.map(|rule| rule.in_namespaces([namespace])));
        }
    }
    if let Some(secret) = secret {
        let namespace = secret.namespace().unwrap_or("default");
        let rule = || because(Rule::on("", "secrets")).in_namespaces([namespace]);
        rules.push(rule().named([secret.name()]).verbs(["get", "update"]));
        rules.push(rule().verbs(["create"]));
    }
    rules
}

fn of_configurations(described: &Described) -> Vec<Rule> {
    let has = |wanted| described.hooks.iter().any(|(role, _)| *role == wanted);
    let mut rules = Vec::new();
    for (role, plural) in [
        (Role::Validating, "validatingwebhookconfigurations"),
        (Role::Mutating, "mutatingwebhookconfigurations"),
    ] {
        if has(role) {
            rules.extend(applied(GROUP, plural, &described.name));
        } else {
            // An earlier release may have had hooks of this role. While its configuration exists, API servers call
            // paths that no server has.
            rules.push(removed(plural, &described.name));
        }
    }
    rules
}

fn of_policies(described: &Described) -> Vec<Rule> {
    let mut rules = Vec::new();
    for plural in POLICIES {
        for name in described.policy_names() {
            rules.extend(applied(GROUP, plural, &name));
        }
        let names = described.removed_policies();
        rules.extend(names.map(|name| removed(plural, &name)));
    }
    rules
}

/// Returns the permissions to apply an object, which creates a missing one.
fn applied(group: &str, plural: &str, name: &str) -> [Rule; 2] {
    let rule = || because(Rule::on(group, plural));
    [
        rule().named([name]).verbs(["get", "patch"]),
        rule().verbs(["create"]),
    ]
}

/// Returns the permission to remove an object of an earlier release.
fn removed(plural: &str, name: &str) -> Rule {
    let rule = because(Rule::on(GROUP, plural));
    rule.named([name]).verbs(["get", "delete"])
}

fn because(rule: Rule) -> Rule {
    rule.because("the webhooks it serves")
}
