//! PriorityClasses.

use super::causes::Causes;
use super::context::Context;

/// The highest priority that is not for the system.
const HIGHEST: i64 = 1_000_000_000;

const SYSTEM: [(&str, i64); 2] = [
    // `SystemCriticalPriority` is twice the highest of users; Pods that a node needs come before those of the cluster.
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

pub(super) fn priority_class(context: &Context<'_>, causes: &mut Causes) {
    let (value, policy) = (context.get("value"), context.get("preemptionPolicy"));
    // `ValidatePriorityClassUpdate` checks only that nothing changes: what was stored once is not validated again.
    if let (Some(old_value), Some(old_policy)) =
        (context.old("value"), context.old("preemptionPolicy"))
    {
        if value.int().unwrap_or(0) != old_value.int().unwrap_or(0) {
            causes.forbidden(&value, "may not be changed in an update.");
        }
        causes.check_immutable(&policy, &old_policy);
        return;
    }
    let name = context.get("metadata").get("name");
    // The API server creates the two classes itself, and so passes this check by their exact values.
    if name.text().starts_with("system-") {
        if let Some(error) = system_wrong(context, name.text()) {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: \
                 {error}"
            );
            causes.forbidden(&name, &detail);
        }
    // There is no lower bound: negative priorities are fine.
    } else if value.int().is_some_and(|value| value > HIGHEST) {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        causes.forbidden(&value, &detail);
    }
    if policy.is_set() {
        causes.check_one_of(&policy, &["PreemptLowerPriority", "Never"]);
    }
}

/// Returns the reason why a class is none of the system's own.
fn system_wrong(context: &Context<'_>, name: &str) -> Option<String> {
    let Some((_, expected)) = SYSTEM.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if context.get("value").int().unwrap_or(0) != *expected {
        return Some(format!("value of {name} PriorityClass must be {expected}"));
    }
    let is_default = *context.get("globalDefault").value() == serde_json::Value::Bool(true);
    is_default.then(|| format!("globalDefault of {name} PriorityClass must be false"))
}
