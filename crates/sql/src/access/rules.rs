//! Rules: what the rules of a namespace grant for one kind and verb.

use std::collections::BTreeSet;

use k8s_openapi::api::authorization::v1::ResourceRule;
use lariat_core::ResourceKind;

use super::verb::Verb;

/// The access that rules grant.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Granted {
    /// Whether all objects are allowed.
    pub(super) is_all: bool,
    /// Whether a rule names objects in a form that authorizers interpret differently.
    ///
    /// A review must decide then.
    pub(super) is_open: bool,
    /// The names of allowed objects.
    pub(super) names: BTreeSet<String>,
}

impl Granted {
    /// Reads what rules grant; rules for subresources grant nothing.
    pub(super) fn new(rules: &[ResourceRule], verb: Verb, kind: &ResourceKind) -> Self {
        let mut granted = Self::default();
        for rule in rules {
            let applies = has(Some(&rule.verbs), verb.as_str())
                && has(rule.api_groups.as_ref(), kind.gvk().group())
                && has(rule.resources.as_ref(), kind.plural());
            if applies {
                granted.add(rule.resource_names.as_deref().unwrap_or_default());
            }
        }
        granted
    }

    fn add(&mut self, names: &[String]) {
        // A rule without names is about all objects.
        self.is_all |= names.is_empty();
        for name in names {
            // The API describes `*` as all names, and RBAC treats it as an object of that name. RBAC matches an empty
            // name with a request that has no name.
            if name == "*" || name.is_empty() {
                self.is_open = true;
            } else {
                self.names.insert(name.clone());
            }
        }
    }
}

/// Returns whether a list contains a text, or the wildcard.
fn has(list: Option<&Vec<String>>, wanted: &str) -> bool {
    let mut list = list.into_iter().flatten();
    list.any(|each| each == "*" || each == wanted)
}

#[cfg(test)]
mod tests {
    use lariat_core::{Gvk, Scope};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(rules: &serde_json::Value, is_all: bool, is_open: bool, names: &[&str]) {
        let read: Vec<ResourceRule> = serde_json::from_value(rules.clone()).unwrap();
        let kind = ResourceKind::new(
            Gvk::new("apps", "v1", "Deployment"),
            "deployments",
            Scope::Namespaced,
        );
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let expected = Granted {
            is_all,
            is_open,
            names,
        };
        assert_eq!(Granted::new(&read, Verb::List, &kind), expected, "{rules}");
    }

    #[test]
    fn rules_grant_what_they_name() {
        let rule = |verb: &str, group: &str, resource: &str, names: &[&str]| json!({"verbs": ["x", verb], "apiGroups": ["x", group], "resources": ["x", resource], "resourceNames": names});
        check(&json!([]), false, false, &[]);
        check(
            &json!([rule("list", "apps", "deployments", &[])]),
            true,
            false,
            &[],
        );
        check(&json!([rule("*", "*", "*", &[])]), true, false, &[]);
        check(
            &json!([rule("*", "*", "*", &["a", "b"])]),
            false,
            false,
            &["a", "b"],
        );
        check(
            &json!([rule("list", "apps", "deployments", &["*"])]),
            false,
            true,
            &[],
        );
        check(
            &json!([rule("list", "apps", "deployments", &["", "a"])]),
            false,
            true,
            &["a"],
        );
        check(
            &json!([
                rule("list", "apps", "deployments", &["a"]),
                rule("list", "apps", "*", &["b"])
            ]),
            false,
            false,
            &["a", "b"],
        );
        for others in [
            rule("get", "apps", "deployments", &[]),
            rule("List", "apps", "deployments", &[]),
            rule("list", "", "deployments", &[]),
            rule("list", "apps", "deployments/status", &[]),
            rule("list", "apps", "*/status", &[]),
            rule("list", "apps", "*/*", &[]),
            rule("list", "ap*", "deployments", &[]),
            json!({"verbs": ["*"]}),
            json!({"verbs": ["*"], "apiGroups": ["*"]}),
            json!({"verbs": [], "apiGroups": ["*"], "resources": ["*"]}),
        ] {
            check(&json!([others]), false, false, &[]);
        }
        check(
            &json!([{"verbs": ["list"], "apiGroups": ["apps"], "resources": ["deployments"]}]),
            true,
            false,
            &[],
        );
    }
}
