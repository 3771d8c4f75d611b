//! Admission policies: rules in CEL, which API servers evaluate without a call.

use k8s_openapi::api::admissionregistration::v1::{
    AuditAnnotation, MatchResources, NamedRuleWithOperations, ParamKind, ParamRef,
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicySpec,
    Validation, Variable,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lariat_core::Gvk;
use serde_json::json;

use crate::hook::{Hook, HookSettings};
use crate::rules::{Role, rules};

/// The reaction to requests that violate a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyAction {
    /// They are denied.
    Deny,
    /// Their clients get a warning; cannot be combined with `Deny`.
    Warn,
    /// The audit event gets an annotation.
    Audit,
}

/// Rules in CEL: a ValidatingAdmissionPolicy with its binding.
///
/// API servers evaluate the rules themselves. So, unlike a webhook, a policy works while the program is down. In turn
/// it sees only the request, its namespace and parameters. Kinds, operations, selectors, match conditions and the
/// failure policy are those of the [`Hook`]; the failure policy applies to expressions that fail.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use lariat::webhook::{Hook, Policy};
///
/// let replicas = Policy::of(Hook::<Deployment>::new("replicas"))
///     .variable("replicas", "object.spec.?replicas.orValue(1)")
///     .rule("variables.replicas <= 5", "a Deployment has at most five replicas");
/// let (policy, binding) = (replicas.definition("replicas.demo.dev"), replicas.binding("replicas.demo.dev"));
/// assert_eq!(policy.metadata.name, binding.metadata.name);
/// ```
#[derive(Debug, Clone)]
#[must_use = "a policy counts once it is applied"]
pub struct Policy {
    hook: HookSettings,
    variables: Vec<Variable>,
    validations: Vec<Validation>,
    annotations: Vec<AuditAnnotation>,
    actions: Vec<PolicyAction>,
    parameters: Option<Parameters>,
}

#[derive(Debug, Clone)]
struct Parameters {
    kind: Gvk,
    reference: ParamRef,
}

impl Policy {
    /// Creates a policy without rules, for the requests that a webhook would get.
    ///
    /// The timeout, the side effects and the reinvocation of the hook are ignored.
    pub fn of<K>(hook: Hook<K>) -> Self {
        Self {
            hook: hook.settings,
            variables: Vec::new(),
            validations: Vec::new(),
            annotations: Vec::new(),
            actions: vec![PolicyAction::Deny],
            parameters: None,
        }
    }

    /// Adds a rule: an expression that must be true, and the message if it is not.
    ///
    /// Expressions can use `object`, `oldObject`, `request`, `params`, `namespaceObject`, `variables` and `authorizer`.
    pub fn rule(mut self, expression: &str, message: &str) -> Self {
        self.validations.push(Validation {
            expression: expression.to_owned(),
            message: Some(message.to_owned()),
            ..Validation::default()
        });
        self
    }

    /// Adds a rule whose message is an expression too.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use lariat::webhook::{Hook, Policy};
    ///
    /// let policy = Policy::of(Hook::<Deployment>::new("replicas"))
    ///     .rule_with("object.spec.replicas <= 5", "string(object.spec.replicas) + ' replicas are too many'");
    /// assert!(policy.definition("replicas.demo.dev").spec.unwrap().validations.is_some());
    /// ```
    pub fn rule_with(mut self, expression: &str, message_expression: &str) -> Self {
        self.validations.push(Validation {
            expression: expression.to_owned(),
            message_expression: Some(message_expression.to_owned()),
            ..Validation::default()
        });
        self
    }

    /// Adds a variable: an expression that later rules use as `variables.NAME`.
    pub fn variable(mut self, name: &str, expression: &str) -> Self {
        self.variables.push(Variable {
            name: name.to_owned(),
            expression: expression.to_owned(),
        });
        self
    }

    /// Adds an annotation to audit events, whose value is an expression.
    pub fn annotate(mut self, key: &str, value_expression: &str) -> Self {
        self.annotations.push(AuditAnnotation {
            key: key.to_owned(),
            value_expression: value_expression.to_owned(),
        });
        self
    }

    /// Sets the reaction to requests that violate a rule (default: they are denied).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::webhook::{Hook, Policy, PolicyAction};
    ///
    /// let policy = Policy::of(Hook::<Pod>::new("labels"))
    ///     .rule("has(object.metadata.labels)", "a Pod has labels")
    ///     .actions([PolicyAction::Warn, PolicyAction::Audit]);
    /// # let _ = policy;
    /// ```
    pub fn actions(self, actions: impl IntoIterator<Item = PolicyAction>) -> Self {
        let actions = actions.into_iter().collect();
        Self { actions, ..self }
    }

    /// Takes `params` from objects of a kind, which the reference selects.
    ///
    /// The program that applies the policy needs permission to read these objects.
    pub fn parameters(self, kind: &Gvk, reference: ParamRef) -> Self {
        let kind = kind.clone();
        let parameters = Some(Parameters { kind, reference });
        Self { parameters, ..self }
    }

    /// Returns the name of the hook.
    pub(crate) fn name(&self) -> &str {
        &self.hook.name
    }

    pub(crate) fn has_rules(&self) -> bool {
        !self.hook.kinds.is_empty() || !self.hook.rules.is_empty()
    }

    /// Returns the policy under a name.
    #[must_use]
    pub fn definition(&self, name: &str) -> ValidatingAdmissionPolicy {
        let rules = rules(&self.hook, Role::Validating).into_iter();
        let rules = rules.map(|rule| NamedRuleWithOperations {
            api_groups: rule.api_groups,
            api_versions: rule.api_versions,
            operations: rule.operations,
            resource_names: None,
            resources: rule.resources,
            scope: rule.scope,
        });
        // The rules of the hook, in the form of a policy; only the type differs.
        let constraints = MatchResources {
            exclude_resource_rules: None,
            match_policy: Some(self.hook.match_policy.as_str().to_owned()),
            namespace_selector: self.hook.namespaces.clone(),
            object_selector: self.hook.objects.clone(),
            resource_rules: Some(rules.collect()),
        };
        let parameters = self.parameters.as_ref();
        ValidatingAdmissionPolicy {
            metadata: named(name),
            spec: Some(ValidatingAdmissionPolicySpec {
                audit_annotations: some(&self.annotations),
                failure_policy: Some(self.hook.failure_policy.as_str().to_owned()),
                match_conditions: some(&self.hook.conditions),
                match_constraints: Some(constraints),
                // The policy names the kind of the parameters, the binding the objects.
                param_kind: parameters.map(|parameters| ParamKind {
                    api_version: Some(parameters.kind.api_version()),
                    kind: Some(parameters.kind.kind().to_owned()),
                }),
                validations: some(&self.validations),
                variables: some(&self.variables),
            }),
            status: None,
        }
    }

    /// Returns the binding of the policy; both have this name.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::webhook::{Hook, Policy};
    ///
    /// let policy = Policy::of(Hook::<Pod>::new("labels")).rule("has(object.metadata.labels)", "a Pod has labels");
    /// let binding = policy.binding("labels.demo.dev");
    /// assert_eq!(binding.metadata.name.as_deref(), Some("labels.demo.dev"));
    /// ```
    #[must_use]
    #[expect(
        clippy::missing_panics_doc,
        reason = "the members are those of a binding in all versions"
    )]
    pub fn binding(&self, name: &str) -> ValidatingAdmissionPolicyBinding {
        let actions = self.actions.iter().map(|action| action.as_str());
        let actions: Vec<&str> = actions.collect();
        let mut spec = json!({"policyName": name, "validationActions": actions});
        if let Some(parameters) = &self.parameters {
            spec["paramRef"] = json!(parameters.reference);
        }
        // The fields of the Rust type depend on the Kubernetes version that the program chooses, so the binding is
        // built from JSON.
        let binding = json!({"metadata": {"name": name}, "spec": spec});
        serde_json::from_value(binding).expect("these are members of a binding in all versions")
    }
}

impl PolicyAction {
    fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn some<T: Clone>(all: &[T]) -> Option<Vec<T>> {
    (!all.is_empty()).then(|| all.to_vec())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn a_policy_has_the_rules_of_its_hook_and_a_binding_of_its_name() {
        let hook = Hook::<ConfigMap>::new("small").match_condition("not-eve", "true");
        let reference = ParamRef {
            name: Some("limits".to_owned()),
            parameter_not_found_action: Some("Deny".to_owned()),
            ..ParamRef::default()
        };
        let policy = Policy::of(hook)
            .variable("size", "size(object.data)")
            .rule("variables.size <= 5", "too much")
            .rule_with("variables.size > 0", "'empty: ' + object.metadata.name")
            .annotate("size", "string(variables.size)")
            .actions([PolicyAction::Warn, PolicyAction::Audit])
            .parameters(&Gvk::new("", "v1", "ConfigMap"), reference);
        let definition = serde_json::to_value(policy.definition("small.demo.dev")).unwrap();
        assert_eq!(
            definition["spec"],
            json!({
                "auditAnnotations": [{"key": "size", "valueExpression": "string(variables.size)"}],
                "failurePolicy": "Fail",
                "matchConditions": [{"name": "not-eve", "expression": "true"}],
                "matchConstraints": {
                    "matchPolicy": "Equivalent",
                    "resourceRules": [{
                        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                        "operations": ["CREATE", "UPDATE"], "scope": "Namespaced",
                    }],
                },
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "validations": [
                    {"expression": "variables.size <= 5", "message": "too much"},
                    {
                        "expression": "variables.size > 0",
                        "messageExpression": "'empty: ' + object.metadata.name",
                    },
                ],
                "variables": [{"name": "size", "expression": "size(object.data)"}],
            })
        );
        let binding = serde_json::to_value(policy.binding("small.demo.dev")).unwrap();
        assert_eq!(
            binding["spec"],
            json!({
                "policyName": "small.demo.dev", "validationActions": ["Warn", "Audit"],
                "paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"},
            })
        );
    }
}
