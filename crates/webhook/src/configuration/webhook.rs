//! The entry of one webhook in a configuration.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, ValidatingWebhook, WebhookClientConfig,
};

use crate::hook::HookSettings;
use crate::rules::{Role, rules};

/// Returns the timeout in seconds, in the range that API servers accept.
fn seconds(timeout: Duration) -> i32 {
    // Rounded up, so that the API server does not stop waiting before the handler's own timeout.
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
    // The only difference to a validating webhook.
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
    use super::*;

    #[test]
    fn timeouts_are_whole_seconds_that_api_servers_take() {
        let check = |millis, expected| assert_eq!(seconds(Duration::from_millis(millis)), expected);
        check(0, 1);
        check(1_000, 1);
        check(2_001, 3);
        check(90_000, 30);
    }
}
