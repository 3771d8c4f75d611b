//! MutatingAdmissionPolicies.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating`.

use std::collections::HashSet;
use std::sync::Arc;

use lariat_apimachinery::admission::{
    Binding, Expression, FailurePolicy, Mutation, Policy, Reinvocation, Scope,
};
use lariat_apimachinery::managed::{self, Write};
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use lariat_apimachinery::patch::Patch;
use serde_json::Value;

use super::request::Request;
use super::selection::Invocation;
use crate::status::{ApiError, PolicyCause};

/// A policy, one of its bindings, and one of its params.
type Key = (String, String, String);

/// The state that the second round needs of the first.
#[derive(Debug, Default)]
pub(super) struct PolicyRounds {
    asked: HashSet<Key>,
    again: HashSet<Key>,
}

impl PolicyRounds {
    /// Notes that the object was changed.
    pub(super) fn changed(&mut self) {
        self.again.extend(self.asked.drain());
    }
}

/// Runs the mutating policies; returns whether one changed the object.
pub(super) async fn mutate(
    request: &Request<'_>,
    policies: &[Arc<Policy>],
    (rounds, is_again): (&mut PolicyRounds, bool),
    old: Option<&Object>,
    object: &mut Object,
) -> Result<bool, ApiError> {
    let registrations = &request.server.registrations;
    let bindings = registrations.mutating_bindings.all(&request.server.store);
    let mut run = Run {
        request,
        rounds,
        is_again,
        causes: Vec::new(),
        has_changed: false,
    };
    for policy in policies {
        let Some(invocation) = request.match_with(&policy.matching, old, Some(&*object))? else {
            continue;
        };
        if let Err(reason) = request.check_params(policy) {
            let reason = format!("failed to configure policy: {reason}");
            run.refuse("Forbidden", policy, None, &reason);
            continue;
        }
        for binding in bindings.iter().filter(|each| each.policy == policy.name) {
            run.apply((policy, binding), &invocation, old, object)
                .await?;
        }
    }
    if run.causes.is_empty() {
        return Ok(run.has_changed);
    }
    let name = request.shown_name(Some(object));
    Err(ApiError::refused_by_policies(
        request.resource,
        &name,
        &run.causes,
    ))
}

/// One round of all policies.
struct Run<'a> {
    request: &'a Request<'a>,
    rounds: &'a mut PolicyRounds,
    is_again: bool,
    /// The causes for which the request is refused.
    causes: Vec<PolicyCause>,
    has_changed: bool,
}

impl Run<'_> {
    /// Evaluates a policy for one of its bindings, with each of its params.
    async fn apply(
        &mut self,
        (policy, binding): (&Policy, &Binding),
        invocation: &Invocation,
        old: Option<&Object>,
        object: &mut Object,
    ) -> Result<(), ApiError> {
        let request = self.request;
        let params = match request.bound_params(policy, binding, (old, Some(&*object))) {
            Ok(params) => params,
            Err(reason) => {
                let reason = format!("failed to configure binding: {reason}");
                self.refuse("Forbidden", policy, Some(binding), &reason);
                return Ok(());
            }
        };
        for param in params {
            let key = key(policy, binding, &param);
            // By policy, binding and params: a policy with two bindings may have to be repeated for one of them only.
            if self.is_again && !self.rounds.again.contains(&key) {
                continue;
            }
            let step = Step {
                request,
                policy,
                invocation,
                param: &param,
            };
            let before = object.clone();
            let carried_out = step.carry_out(old, object).await?;
            // Also what was changed before a later mutation of the policy failed, or no longer applied.
            if managed::differ(&before, object) {
                self.has_changed = true;
                self.rounds.changed();
            }
            if let Err(reason) = carried_out {
                self.refuse("Invalid", policy, Some(binding), &reason);
            }
            // Only now: its own change is no reason to ask it again.
            if policy.reinvocation == Reinvocation::IfNeeded {
                self.rounds.asked.insert(key);
            }
        }
        Ok(())
    }

    /// Refuses the request, unless the policy ignores failures.
    fn refuse(
        &mut self,
        status: &'static str,
        policy: &Policy,
        binding: Option<&Binding>,
        reason: &str,
    ) {
        if policy.failure_policy == FailurePolicy::Ignore {
            return;
        }
        let name = &policy.name;
        let message = match binding {
            Some(binding) => format!(
                "policy '{name}' with binding '{}' denied request: {reason}",
                binding.name
            ),
            None => format!("policy {name:?} denied request: {reason}"),
        };
        self.causes.push((status, message));
    }
}

fn key(policy: &Policy, binding: &Binding, param: &Value) -> Key {
    let named = |member: &str| param["metadata"][member].as_str().unwrap_or_default();
    let param = format!("{}/{}", named("namespace"), named("name"));
    (policy.name.clone(), binding.name.clone(), param)
}

impl Request<'_> {
    /// Returns the params for each mutation of a binding, none if it does not apply.
    fn bound_params(
        &self,
        policy: &Policy,
        binding: &Binding,
        seen: (Option<&Object>, Option<&Object>),
    ) -> Result<Vec<Value>, String> {
        if self.is_bound(binding, seen)? {
            self.params(policy, binding)
        } else {
            Ok(Vec::new())
        }
    }
}

/// A policy for one of its bindings and params.
struct Step<'a> {
    request: &'a Request<'a>,
    policy: &'a Policy,
    invocation: &'a Invocation,
    param: &'a Value,
}

impl Step<'_> {
    /// Applies the mutations in order, until the policy no longer matches.
    ///
    /// The inner error is one of the policy; what was changed before it stays.
    async fn carry_out(
        &self,
        old: Option<&Object>,
        object: &mut Object,
    ) -> Result<Result<(), String>, ApiError> {
        let (request, invocation) = (self.request, self.invocation);
        let (old, seen) = request
            .both_seen_by(invocation, old, Some(&*object))
            .await?;
        let mut seen = seen.unwrap_or_default();
        let mut error = None;
        for mutation in &self.policy.mutations {
            let mut scope = request.scope(invocation, (old.as_ref(), Some(&seen)), self.param);
            match self.policy.applies(&mut scope) {
                Ok(true) => {}
                Ok(false) => return Ok(Ok(())),
                Err(reason) => return Ok(Err(reason)),
            }
            match self.change(mutation, &scope, &seen) {
                Ok(changed) => {
                    let mut changed = request.taken_back(invocation, changed).await?;
                    request.read(&mut changed)?;
                    seen = request.seen_by(invocation, &changed).await?;
                    *object = changed;
                }
                Err(reason) => error = Some(reason),
            }
        }
        Ok(error.map_or(Ok(()), Err))
    }

    fn change(&self, mutation: &Mutation, scope: &Scope, seen: &Object) -> Result<Object, String> {
        let schema = self.request.types_of(self.invocation);
        match mutation {
            Mutation::JsonPatch(expression) => {
                let patch = json_patch(expression, scope)?;
                match patch.apply(schema.root(), seen.clone()) {
                    Ok(changed) => Ok(changed),
                    // A test that fails means that nothing is to be done.
                    Err(error) if error.to_string().starts_with("testing value ") => {
                        Ok(seen.clone())
                    }
                    Err(error) => Err(format!("JSON Patch: {error}")),
                }
            }
            Mutation::Apply(expression) => {
                let Value::Object(mut applied) = expression.evaluate(scope)? else {
                    return Err(
                        "unsupported return type from ApplyConfiguration expression".to_owned()
                    );
                };
                applied.insert("kind".into(), self.invocation.kind.kind().into());
                let version = self.invocation.kind.api_version();
                applied.insert("apiVersion".into(), version.clone().into());
                let name = metadata_text(seen, "name").to_owned();
                metadata_mut(&mut applied).insert("name".into(), name.into());
                // Name and time show nowhere: the managers are put back below.
                let write = Write::new(&schema, &version, "policy", "1970-01-01T00:00:00Z");
                let merged = write.apply(Some(seen), &applied, true);
                let mut merged =
                    merged.map_err(|error| format!("error applying patch: {error}"))?;
                // It would drop what it does not set.
                let atomics = managed::atomics(schema.root(), &Value::Object(applied));
                if !atomics.is_empty() {
                    let atomics = atomics.join(", ");
                    return Err(format!(
                        "error applying patch: invalid ApplyConfiguration: may not mutate atomic \
                         arrays, maps or structs: {atomics}"
                    ));
                }
                // What policies set has no owner.
                let metadata = metadata_mut(&mut merged);
                match seen
                    .get("metadata")
                    .and_then(|seen| seen.get("managedFields"))
                {
                    Some(managers) => {
                        drop(metadata.insert("managedFields".into(), managers.clone()))
                    }
                    None => drop(metadata.remove("managedFields")),
                }
                Ok(merged)
            }
        }
    }
}

/// Evaluates an expression that makes a JSON patch.
fn json_patch(expression: &Expression, scope: &Scope) -> Result<Patch, String> {
    let operations = expression.evaluate(scope)?;
    if !operations.is_array() {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    }
    Patch::json(operations.to_string().as_bytes()).map_err(|error| error.to_string())
}
