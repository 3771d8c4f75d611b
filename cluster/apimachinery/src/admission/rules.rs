//! The rules that say what a webhook or a policy applies to.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules`.

use serde_json::Value;

use super::attributes::{Attributes, ResourceName};

/// A list of rules, compiled.
///
/// ```
/// use lariat_apimachinery::admission::{Attributes, Operation, ResourceName, Rules};
/// use lariat_core::Gvk;
/// use serde_json::{Value, json};
///
/// let rules = Rules::read(&json!([
///     {"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["deployments"]},
/// ]));
/// let mut attributes = Attributes {
///     operation: Operation::Create,
///     resource: ResourceName { group: "apps".into(), version: "v1".into(), plural: "deployments".into() },
///     subresource: String::new(),
///     kind: Gvk::new("apps", "v1", "Deployment"),
///     namespace: "shop".into(),
///     name: "web".into(),
///     options: Value::Null,
///     dry_run: false,
///     user: Value::Null,
/// };
/// assert!(rules.match_exactly(&attributes));
/// // A subresource has a rule of its own.
/// attributes.subresource = "scale".into();
/// assert!(!rules.match_exactly(&attributes));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Rules(Vec<Rule>);

/// One rule.
#[derive(Debug, Clone)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    /// The names it is limited to, if it is, which only rules of policies are.
    names: Vec<String>,
    scope: RuleScope,
}

/// The scope of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleScope {
    /// All objects.
    All,
    /// Cluster-scoped objects, namespaces included.
    Cluster,
    /// Objects in namespaces.
    Namespaced,
}

impl Rules {
    /// Reads the rules of a webhook or a policy; parts of a wrong type count as absent.
    #[must_use]
    pub fn read(rules: &Value) -> Self {
        let rules = rules.as_array().into_iter().flatten();
        Self(rules.map(Rule::read).collect())
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a rule applies to a request for the resource it names.
    #[must_use]
    pub fn match_exactly(&self, attributes: &Attributes) -> bool {
        let resource = &attributes.resource;
        self.0.iter().any(|rule| rule.matches(attributes, resource))
    }

    /// Returns the first of the equivalent resources to which a rule applies.
    #[must_use]
    pub fn match_equivalent(
        &self,
        attributes: &Attributes,
        equivalents: &[ResourceName],
    ) -> Option<ResourceName> {
        let others = || {
            let others = equivalents.iter();
            others.filter(|each| **each != attributes.resource)
        };
        // The rules are the outer loop, so the first rule that has any equivalent decides the version.
        let mut found = self.0.iter().filter_map(|rule| {
            let mut others = others();
            others.find(|resource| rule.matches(attributes, resource))
        });
        found.next().cloned()
    }
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let texts = |member: &str| {
            let texts = rule[member].as_array().into_iter().flatten();
            let texts = texts.filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            scope: match rule["scope"].as_str() {
                Some("Cluster") => RuleScope::Cluster,
                Some("Namespaced") => RuleScope::Namespaced,
                _ => RuleScope::All,
            },
        }
    }

    fn matches(&self, attributes: &Attributes, resource: &ResourceName) -> bool {
        // `Matcher.Matches`. Operation and scope are those of the request, the rest is about the resource in the
        // version that is tried.
        self.has_scope(attributes, resource)
            && has(&self.operations, attributes.operation.as_str())
            && has(&self.groups, &resource.group)
            && has(&self.versions, &resource.version)
            && self.names_resource(&resource.plural, &attributes.subresource)
            // A request whose name is still to be generated has an empty one, and matches no list of names.
            && (self.names.is_empty() || self.names.contains(&attributes.name))
    }

    fn has_scope(&self, attributes: &Attributes, resource: &ResourceName) -> bool {
        // A request for a Namespace has its name as the namespace.
        let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
        let is_inside = !is_namespace && !attributes.namespace.is_empty();
        match self.scope {
            RuleScope::All => true,
            RuleScope::Cluster => !is_inside,
            RuleScope::Namespaced => is_inside,
        }
    }

    fn names_resource(&self, plural: &str, subresource: &str) -> bool {
        let fits = |pattern: &str, text: &str| pattern == "*" || pattern == text;
        self.resources.iter().any(|each| {
            let (resource, below) = each.split_once('/').unwrap_or((each, ""));
            // `pods` is not `pods/status`, and `*` alone names no subresource; `*/*` names all.
            fits(resource, plural) && fits(below, subresource)
        })
    }
}

fn has(items: &[String], wanted: &str) -> bool {
    items.iter().any(|each| each == "*" || each == wanted)
}

#[cfg(test)]
mod tests {
    use lariat_core::{Gvk, Operation};
    use serde_json::json;

    use super::*;

    fn matches(rule: Value, resource: &str, namespace: &str) -> bool {
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let attributes = Attributes {
            operation: Operation::Create,
            resource: ResourceName {
                group: String::new(),
                version: "v1".to_owned(),
                plural: plural.to_owned(),
            },
            subresource: subresource.to_owned(),
            kind: Gvk::new("", "v1", "X"),
            namespace: namespace.to_owned(),
            name: String::new(),
            options: Value::Null,
            dry_run: false,
            user: Value::Null,
        };
        let mut whole = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"]});
        if let (Value::Object(whole), Value::Object(rule)) = (&mut whole, rule) {
            whole.extend(rule);
        }
        Rules::read(&json!([whole])).match_exactly(&attributes)
    }

    #[test]
    fn patterns_of_resources_cover_subresources_only_when_they_say_so() {
        for (pattern, resource, expected) in [
            ("pods", "pods", true),
            ("pods", "pods/status", false),
            ("pods/status", "pods/status", true),
            ("pods/*", "pods/eviction", true),
            ("pods/*", "pods", true),
            ("*", "pods", true),
            ("*", "pods/status", false),
            ("*/status", "pods/status", true),
            ("*/*", "pods/status", true),
        ] {
            let found = matches(json!({"resources": [pattern]}), resource, "n");
            assert_eq!(found, expected, "{pattern} {resource}");
        }
    }

    #[test]
    fn a_namespace_is_outside_of_namespaces() {
        let rule = |scope: &str| json!({"resources": ["*"], "scope": scope});
        assert!(matches(rule("Cluster"), "namespaces", "n"));
        assert!(!matches(rule("Namespaced"), "namespaces", "n"));
        assert!(matches(rule("Namespaced"), "pods", "n"));
        assert!(!matches(rule("Cluster"), "pods", "n"));
        assert!(matches(rule("*"), "nodes", ""));
    }

    #[test]
    fn other_operations_groups_and_versions_do_not_match() {
        assert!(!matches(
            json!({"resources": ["pods"], "operations": ["UPDATE"]}),
            "pods",
            "n"
        ));
        assert!(!matches(
            json!({"resources": ["pods"], "apiGroups": ["apps"]}),
            "pods",
            "n"
        ));
        assert!(!matches(
            json!({"resources": ["pods"], "apiVersions": ["v2"]}),
            "pods",
            "n"
        ));
        assert!(matches(
            json!({"resources": ["pods"], "operations": ["*"], "apiGroups": ["*"]}),
            "pods",
            "n"
        ));
    }
}
