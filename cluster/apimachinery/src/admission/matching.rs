//! The matching of requests by webhooks and policies.

use serde_json::Value;

use super::rules::Rules;

/// The requests to which a webhook, a policy or a binding applies.
#[derive(Debug, Clone, Default)]
pub struct Matching {
    /// The rules of which one must match.
    pub rules: Rules,
    /// The rules of which none may match.
    pub excluded: Rules,
    /// Whether no rules at all mean every request, as they do for policies.
    pub any_without_rules: bool,
    /// Whether the rules apply to requests for other versions of what they name.
    pub equivalent: bool,
    /// The labels a namespace must have, as a `LabelSelector`.
    pub namespace_selector: Value,
    /// The labels an object must have, as a `LabelSelector`.
    pub object_selector: Value,
}

impl Matching {
    /// Reads the match rules of a webhook; parts of a wrong type count as absent.
    #[must_use]
    pub fn of_webhook(webhook: &Value) -> Self {
        Self {
            rules: Rules::read(&webhook["rules"]),
            ..Self::selectors(webhook)
        }
    }

    /// Parses `matchConstraints` or `matchResources`.
    ///
    /// Parts of a wrong type count as absent.
    #[must_use]
    pub fn read(resources: &Value) -> Self {
        Self {
            rules: Rules::read(&resources["resourceRules"]),
            excluded: Rules::read(&resources["excludeResourceRules"]),
            // A binding without rules restricts nothing, while a webhook without rules is never called.
            any_without_rules: true,
            ..Self::selectors(resources)
        }
    }

    fn selectors(holder: &Value) -> Self {
        Self {
            // The default is `Equivalent`, which is written into the object when it is stored.
            equivalent: holder["matchPolicy"] == "Equivalent",
            namespace_selector: holder["namespaceSelector"].clone(),
            object_selector: holder["objectSelector"].clone(),
            ..Self::default()
        }
    }
}
