//! Webhooks that change objects.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/webhook/mutating` and `reinvocation.go` above it.

use std::collections::HashSet;
use std::sync::Arc;

use lariat_apimachinery::admission::{Policy, Reinvocation, Webhook};
use lariat_apimachinery::managed;
use lariat_apimachinery::object::{Object, metadata_mut};
use lariat_apimachinery::patch::Patch;
use serde_json::{Value, json};

use super::call::{CallFailure, WebhookCall};
use super::mutation_policies::{self, PolicyRounds};
use super::request::{Plugins, Request};
use super::selection::Invocation;
use crate::status::ApiError;
use crate::strategy;

/// The state that the second round needs of the first.
#[derive(Debug, Default)]
struct Rounds {
    /// The webhooks that were asked and want to be asked again if the object changes.
    asked: HashSet<usize>,
    /// Those behind which it has changed.
    again: HashSet<usize>,
    /// Something was changed, so that there is a second round.
    has_changed: bool,
    round: usize,
}

impl Rounds {
    fn changed(&mut self) {
        // The webhook that made the change joins `asked` only afterwards, so its own change does not lead to a second
        // call of it.
        self.again.extend(self.asked.drain());
        self.has_changed = true;
    }
}

/// Runs the mutating policies and webhooks, twice if one has changed the object.
pub(super) async fn mutate(
    request: &Request<'_>,
    (policies, hooks): (&[Arc<Policy>], &[Arc<Webhook>]),
    plugins: Plugins<'_>,
    (old, mut object): (Option<&Object>, Object),
) -> Result<Object, ApiError> {
    // Built-in plugins set defaults that policies and webhooks must see; what these change is given to the plugins
    // again below.
    plugins(&mut object)?;
    // Taken after the plugins and before anything else: `finish` restores these entries if a webhook damages them.
    let managers = managers(&object).cloned();
    let (mut rounds, mut policy_rounds) = (Rounds::default(), PolicyRounds::default());
    let first = (&mut policy_rounds, false);
    let has_changed = mutation_policies::mutate(request, policies, first, old, &mut object).await?;
    // What policies changed themselves is no reason to ask them again; only what webhooks and plugins change after them
    // is.
    let after_policies = object.clone();
    ask_all(request, hooks, &mut rounds, old, &mut object).await?;
    if !has_changed && !rounds.has_changed {
        return Ok(object);
    }
    // One more round and never a third, so that two webhooks which undo each other cannot loop.
    rounds.round = 1;
    // Likewise for webhooks: in the second round only changes by plugins and policies concern those that were asked
    // last.
    let after_hooks = object.clone();
    plugins(&mut object)?;
    if object != after_policies {
        policy_rounds.changed();
    }
    let second = (&mut policy_rounds, true);
    mutation_policies::mutate(request, policies, second, old, &mut object).await?;
    if object != after_hooks {
        rounds.changed();
    }
    ask_all(request, hooks, &mut rounds, old, &mut object).await?;
    finish(request, managers, &mut object);
    Ok(object)
}

/// Calls the mutating webhooks for a deletion, in which there is nothing to change.
pub(super) async fn ask(
    request: &Request<'_>,
    hooks: &[Arc<Webhook>],
    old: &Object,
) -> Result<(), ApiError> {
    for (at, hook) in hooks.iter().enumerate() {
        let Some(invocation) = request.select(hook, Some(old), None).await? else {
            continue;
        };
        let shown = request.seen_by(&invocation, old).await?;
        let call = WebhookCall {
            request,
            hook,
            invocation: &invocation,
            mutates: true,
            objects: (None, Some(&shown)),
        };
        let Some(patch) = settle(&call, (0, at), call.send().await)? else {
            continue;
        };
        if !is_void(&patch) {
            return Err(ApiError::internal_error(format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this \
                 operation",
                hook.name
            )));
        }
    }
    Ok(())
}

async fn ask_all(
    request: &Request<'_>,
    hooks: &[Arc<Webhook>],
    rounds: &mut Rounds,
    old: Option<&Object>,
    object: &mut Object,
) -> Result<(), ApiError> {
    for (at, hook) in hooks.iter().enumerate() {
        let Some(invocation) = request.select(hook, old, Some(&*object)).await? else {
            continue;
        };
        // The second round is for those that want it and were called before something changed.
        if rounds.round > 0 && !rounds.again.contains(&at) {
            continue;
        }
        let changed = ask_one(
            request,
            hook,
            &invocation,
            (rounds.round, at),
            (old, &*object),
        );
        if let Some(changed) = changed.await? {
            *object = changed;
            rounds.changed();
        }
        if hook.reinvocation == Reinvocation::IfNeeded {
            rounds.asked.insert(at);
        }
    }
    Ok(())
}

/// Calls one webhook; returns the object if the webhook changed it.
async fn ask_one(
    request: &Request<'_>,
    hook: &Webhook,
    invocation: &Invocation,
    place: (usize, usize),
    (old, object): (Option<&Object>, &Object),
) -> Result<Option<Object>, ApiError> {
    let shown = request.seen_by(invocation, object).await?;
    let (old, _) = request.both_seen_by(invocation, old, None).await?;
    let call = WebhookCall {
        request,
        hook,
        invocation,
        mutates: true,
        objects: (Some(&shown), old.as_ref()),
    };
    let patch = settle(&call, place, call.send().await)?;
    let Some(patch) = patch.filter(|patch| !is_void(patch)) else {
        note(&call, place, false);
        return Ok(None);
    };
    let refuse = |reason: String| ApiError::internal_error(reason);
    let typed = request.types_of(invocation);
    let mut patched = patch
        .apply(typed.root(), shown.clone())
        .map_err(|error| refuse(error.to_string()))?;
    // The webhook saw the object in the version its rules name; the next one may name another, so the object goes
    // through the version of the request.
    patched = request.taken_back(invocation, patched).await?;
    request.read(&mut patched)?;
    // A patch that changes nothing does not count for the second round of webhooks.
    let is_changed = managed::differ(object, &patched);
    note(&call, place, is_changed);
    Ok(is_changed.then_some(patched))
}

/// Returns the patch of a call, or the error for the client.
///
/// `None` if the webhook could not be asked, and does not have to be.
fn settle(
    call: &WebhookCall<'_>,
    (round, at): (usize, usize),
    answer: Result<Option<Patch>, CallFailure>,
) -> Result<Option<Patch>, ApiError> {
    let failure = match answer {
        Ok(patch) => return Ok(patch),
        Err(failure) => failure,
    };
    let refused = call.refusal(failure);
    if refused.is_none() {
        let key = format!("failed-open.mutation.webhook.admission.k8s.io/round_{round}_index_{at}");
        call.request.annotate(key, call.hook.name.clone());
    }
    refused.map_or(Ok(None), Err)
}

fn note(call: &WebhookCall<'_>, (round, at): (usize, usize), is_changed: bool) {
    let hook = call.hook;
    let key = format!("mutation.webhook.admission.k8s.io/round_{round}_index_{at}");
    let value = json!({
        "configuration": hook.configuration, "webhook": hook.name, "mutated": is_changed,
    });
    call.request.annotate(key, value.to_string());
}

fn is_void(patch: &Patch) -> bool {
    matches!(patch, Patch::Json(operations) if operations.is_empty())
}

fn managers(object: &Object) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// Restores the metadata that webhooks must not break.
fn finish(request: &Request<'_>, before: Option<Value>, object: &mut Object) {
    // What is of another kind is not stored, so it has no managers to keep.
    if !request.is_of_resource() {
        return;
    }
    let after = managers(object);
    if after != before.as_ref()
        && let Err(reason) = managed::check_entries(after.unwrap_or(&Value::Null))
    {
        request.warnings.add(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated \
             mutating admission controller; please fix your requests: {reason}"
        ));
        match before {
            Some(before) => drop(metadata_mut(object).insert("managedFields".into(), before)),
            None => drop(metadata_mut(object).remove("managedFields")),
        }
    }
    let repeated = strategy::deduplicate_owners(object);
    if !repeated.is_empty() {
        request.warnings.add(format!(
            ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups \
             owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; \
             duplicate UID(s) observed: {}",
            repeated.join(", ")
        ));
    }
}
