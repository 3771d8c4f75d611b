//! The entry of one webhook in a configuration.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, RuleWithOperations, ValidatingWebhook, WebhookClientConfig,
};
use lariat_core::{ResourceKind, Scope};

use crate::admission::Operation;
use crate::hook::HookSettings;

/// What a webhook does to requests.
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
pub(super) fn rules(hook: &HookSettings, role: Role) -> Vec<RuleWithOperations> {
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

fn rule(hook: &HookSettings, kind: &ResourceKind, operations: &[String]) -> RuleWithOperations {
    let gvk = kind.gvk();
    let plural = kind.plural();
    let resources = match hook.subresources.is_empty() {
        true => vec![plural.to_owned()],
        false => {
            let named = hook.subresources.iter().map(|name| match name.as_str() {
                "" => plural.to_owned(),
                name => format!("{plural}/{name}"),
            });
            named.collect()
        }
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

/// Returns the timeout in seconds, as API servers take it.
fn seconds(timeout: Duration) -> i32 {
    let rounded_up = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
    i32::try_from(rounded_up.clamp(1, 30)).unwrap_or(30)
}

pub(super) fn validating(
    hook: &HookSettings,
    name: String,
    client_config: WebhookClientConfig,
) -> ValidatingWebhook {
    ValidatingWebhook {
        admission_review_versions: vec!["v1".to_owned()],
        client_config,
        failure_policy: Some(hook.failure_policy.as_str().to_owned()),
        match_conditions: Some(hook.conditions.clone()).filter(|all| !all.is_empty()),
        match_policy: Some(hook.match_policy.as_str().to_owned()),
        name,
        namespace_selector: hook.namespaces.clone(),
        object_selector: hook.objects.clone(),
        rules: Some(rules(hook, Role::Validating)),
        side_effects: hook.side_effects.as_str().to_owned(),
        timeout_seconds: Some(seconds(hook.timeout)),
    }
}

pub(super) fn mutating(
    hook: &HookSettings,
    name: String,
    client_config: WebhookClientConfig,
) -> MutatingWebhook {
    let policy = if hook.reinvokes { "IfNeeded" } else { "Never" };
    MutatingWebhook {
        admission_review_versions: vec!["v1".to_owned()],
        client_config,
        failure_policy: Some(hook.failure_policy.as_str().to_owned()),
        match_conditions: Some(hook.conditions.clone()).filter(|all| !all.is_empty()),
        match_policy: Some(hook.match_policy.as_str().to_owned()),
        name,
        namespace_selector: hook.namespaces.clone(),
        object_selector: hook.objects.clone(),
        reinvocation_policy: Some(policy.to_owned()),
        rules: Some(rules(hook, Role::Mutating)),
        side_effects: hook.side_effects.as_str().to_owned(),
        timeout_seconds: Some(seconds(hook.timeout)),
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::Gvk;

    use super::*;
    use crate::hook::Hook;

    #[test]
    fn timeouts_are_whole_seconds_that_api_servers_take() {
        let check = |millis, expected| assert_eq!(seconds(Duration::from_millis(millis)), expected);
        check(0, 1);
        check(1_000, 1);
        check(2_001, 3);
        check(90_000, 30);
    }

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
