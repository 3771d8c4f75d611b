//! Webhooks and policies of admission.

use super::members::{each, inner, made, set};
use crate::object::Object;

pub(super) fn fill(kind: &str, object: &mut Object) {
    match kind {
        "ValidatingWebhookConfiguration" => each(object, "webhooks", webhook),
        "MutatingWebhookConfiguration" => each(object, "webhooks", |hook| {
            webhook(hook);
            set(hook, "reinvocationPolicy", "Never");
        }),
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
            if let Some(spec) = made(object, "spec") {
                // `SetDefaults_ValidatingAdmissionPolicySpec` and its mutating twin.
                set(spec, "failurePolicy", "Fail");
                resources(spec, "matchConstraints");
            }
        }
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            if let Some(spec) = inner(object, "spec") {
                resources(spec, "matchResources");
            }
        }
        _ => {}
    }
}

fn resources(spec: &mut Object, member: &str) {
    if let Some(resources) = inner(spec, member) {
        matched(resources);
        each(resources, "resourceRules", rule);
        each(resources, "excludeResourceRules", rule);
    }
}

fn webhook(hook: &mut Object) {
    set(hook, "failurePolicy", "Fail");
    set(hook, "timeoutSeconds", 10);
    matched(hook);
    each(hook, "rules", rule);
    let service = inner(hook, "clientConfig").and_then(|config| inner(config, "service"));
    if let Some(service) = service {
        set(service, "port", 443);
    }
}

/// Sets the defaults of match rules: equivalent kinds, everywhere.
// `SetDefaults_MatchResources`. Empty selectors match everything; absent ones are made visible by this.
fn matched(holder: &mut Object) {
    set(holder, "matchPolicy", "Equivalent");
    set(holder, "namespaceSelector", Object::new());
    set(holder, "objectSelector", Object::new());
}

fn rule(rule: &mut Object) {
    set(rule, "scope", "*");
}
