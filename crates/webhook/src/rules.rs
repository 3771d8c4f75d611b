//! The rules of a webhook: the requests for which it is called.

use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;
use lariat_core::{ResourceKind, Scope};

use crate::admission::Operation;
use crate::hook::HookSettings;

/// The role of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Role {
    Validating,
    Mutating,
}

impl Role {
    /// Returns the path of a webhook.
    pub(crate) fn path(self, name: &str) -> String {
        match self {
            Self::Validating => format!("/validate/{name}"),
            Self::Mutating => format!("/mutate/{name}"),
        }
    }
}

/// Returns the rules of a webhook.
pub(crate) fn rules(hook: &HookSettings, role: Role) -> Vec<RuleWithOperations> {
    // The API server would call a mutating webhook for deletions too, but there is nothing to patch.
    let is_for = |operation: &&Operation| {
        role == Role::Validating || matches!(operation, Operation::Create | Operation::Update)
    };
    let operations = hook.operations.iter().filter(is_for);
    let operations: Vec<String> = operations.map(|each| each.as_str().to_owned()).collect();
    let of_kinds = hook.kinds.iter().map(|kind| rule(hook, kind, &operations));
    let mut rules = hook.rules.clone();
    rules.extend(of_kinds);
    rules
}

/// Returns the rule of a webhook for one of its kinds.
fn rule(hook: &HookSettings, kind: &ResourceKind, operations: &[String]) -> RuleWithOperations {
    let gvk = kind.gvk();
    let plural = kind.plural();
    let resources = if hook.subresources.is_empty() {
        vec![plural.to_owned()]
    } else {
        let named = hook.subresources.iter().map(|name| match name.as_str() {
            "" => plural.to_owned(),
            name => format!("{plural}/{name}"),
        });
        named.collect()
    };
    let scope = match kind.scope() {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    RuleWithOperations {
        api_groups: Some(vec![gvk.group().to_owned()]),
        api_versions: Some(vec![gvk.version().to_owned()]),
        operations: Some(operations.to_vec()),
        resources: Some(resources),
        scope: Some(scope.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::Gvk;

    use super::*;
    use crate::hook::Hook;

    #[test]
    fn mutating_rules_have_only_operations_that_store_an_object() {
        let kind = ResourceKind::new(Gvk::new("", "v1", "Pod"), "pods", Scope::Namespaced);
        let all = [Operation::Create, Operation::Delete, Operation::Connect];
        let hook = Hook::<()>::of("a", [kind])
            .operations(all)
            .subresource("")
            .subresource("exec");
        let of = |role| rules(&hook.settings, role).remove(0);
        assert_eq!(of(Role::Mutating).operations.unwrap(), ["CREATE"]);
        let rule = of(Role::Validating);
        assert_eq!(rule.operations.unwrap(), ["CREATE", "DELETE", "CONNECT"]);
        assert_eq!(rule.resources.unwrap(), ["pods", "pods/exec"]);
        assert_eq!(rule.scope.unwrap(), "Namespaced");
    }
}
