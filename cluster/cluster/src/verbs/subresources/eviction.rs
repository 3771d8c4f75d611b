//! `pods/eviction`: a deletion that disruption budgets may refuse.
//!
//! Source: `EvictionREST` in `k8s.io/kubernetes/pkg/registry/core/pod/storage`.

use std::sync::Arc;

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use lariat_core::LabelSelector;
use serde_json::{Value, json};

use super::body::read_body;
use crate::status::ApiError;
use crate::store::{Range, Stored};
use crate::strategy::{self, Part, Replacement, replacement, selector_text};
use crate::verbs::answer::Answer;
use crate::verbs::call::Call;
use crate::verbs::decode::Expected;
use crate::verbs::delete_options::DeleteOptions;
use crate::verbs::{delete, ownership, update};
use crate::wire::write_options::WriteOptions;

pub(super) async fn evict(call: &Call) -> Result<Answer, ApiError> {
    let mut dry_run = call.query.check_write(WriteOptions::Create)?;
    // An Eviction has the same members in both versions.
    let is_older = call.has_version("policy/v1beta1");
    let api_version = if is_older {
        "policy/v1beta1"
    } else {
        "policy/v1"
    };
    let mut eviction = read(call, api_version)?;
    let options = DeleteOptions::of_eviction(&eviction)?;
    options.check_eviction(call.name(), dry_run)?;
    eviction = admit(call, api_version, dry_run, eviction).await?;
    let options = DeleteOptions::of_eviction(&eviction)?;
    dry_run |= options.is_dry_run();
    let key = call.resource.key(call.namespace(), call.name());
    let (mut is_allowed, mut marked) = (false, None);
    loop {
        let found = call.server.store.get(call.resource.table, &key);
        let current = found.ok_or_else(|| call.not_found())?;
        if let Some(uid) = &marked
            && *uid != current.uid()
        {
            return Err(call.not_found());
        }
        // What was taken from the budget stays taken if the Pod changes before it goes.
        if !is_allowed && counts(&current) {
            match use_budget(call, &current, dry_run)? {
                Budget::Used => is_allowed = true,
                Budget::Spared => {}
                Budget::Raced => continue,
            }
        }
        // Watchers see the reason in the last state; no manager owns it.
        if !dry_run && marked.is_none() {
            options.given().check_preconditions(call, &current)?;
            marked = mark(call, &current).then(|| current.uid().to_owned());
            continue;
        }
        // As the deletion itself does; the write of the condition has changed the version.
        options.check()?;
        let checked = if marked.is_some() {
            options.without_version()
        } else {
            options.clone()
        };
        checked.check_preconditions(call, &current)?;
        let deletion = options.deletion();
        if dry_run || delete::delete_once(&call.server, &call.resource, &current, deletion) {
            return Ok(Answer::ActionDone);
        }
    }
}

/// Reads an eviction, which has the name and the namespace of its Pod.
fn read(call: &Call, api_version: &str) -> Result<Object, ApiError> {
    let expected = Expected {
        kind: "Eviction",
        api_version,
        custom: false,
    };
    let eviction = read_body(call, expected)?;
    call.check_same_namespace(&eviction)?;
    if metadata_text(&eviction, "name") != call.name() {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    Ok(eviction)
}

/// Runs mutating and validating admission for an eviction.
async fn admit(
    call: &Call,
    api_version: &str,
    dry_run: bool,
    mut eviction: Object,
) -> Result<Object, ApiError> {
    let metadata = metadata_mut(&mut eviction);
    metadata.insert("name".into(), call.name().into());
    metadata.insert("namespace".into(), call.namespace().into());
    call.admit_as((api_version, "Eviction"), dry_run, eviction)
        .await
}

/// Sets the condition `DisruptionTarget`; returns whether the write succeeded.
fn mark(call: &Call, current: &Arc<Stored>) -> bool {
    let mut pod = current.object();
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null,
    });
    strategy::set_condition(&mut pod, condition, &call.server.clock.now());
    let replacement = Replacement::Changed(pod);
    update::replace(&call.server, &call.resource, current, &replacement).is_some()
}

/// Returns whether a Pod counts for its budget: it runs and is not deleted.
fn counts(pod: &Stored) -> bool {
    let object = pod.object();
    let phase = object
        .get("status")
        .and_then(|status| status.get("phase")?.as_str());
    // As canIgnorePDB: such a Pod serves nothing that its deletion could disrupt.
    let runs = !matches!(phase, Some("Pending" | "Succeeded" | "Failed"));
    runs && !pod.is_deleting()
}

/// The result of using a Pod's disruption budget.
enum Budget {
    /// One disruption is taken, or the Pod has no budget.
    Used,
    /// The Pod may go without a disruption, as long as it is not ready.
    Spared,
    /// Another client used the budget first: the Pod and the budget are read again.
    Raced,
}

/// Counts one disruption against a Pod's budget.
fn use_budget(call: &Call, pod: &Stored, dry_run: bool) -> Result<Budget, ApiError> {
    let catalog = call.server.kinds.catalog();
    let Some(budgets) = catalog.resource("policy", "v1", "poddisruptionbudgets") else {
        return Ok(Budget::Used);
    };
    let matching = budgets_of(call, budgets, pod);
    let budget = match &matching[..] {
        [] => return Ok(Budget::Used),
        [one] => one,
        _ => {
            return Err(ApiError::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does \
                 not support.",
            ));
        }
    };
    let mut old = budget.object();
    budgets.set_type(&mut old);
    if spares_unhealthy(&old) && !is_ready(pod) {
        return Ok(Budget::Spared);
    }
    if !is_observed(&old) {
        return Err(ApiError::budget_unobserved(budget.key().name()));
    }
    let allowed = number(&old, "status", "disruptionsAllowed");
    if allowed <= 0 {
        let name = budget.key().name();
        return Err(ApiError::budget_exhausted(shortage(name, &old)));
    }
    if dry_run {
        return Ok(Budget::Used);
    }
    let rest = allowed - 1;
    let mut new = old.clone();
    let now = call.server.clock.now();
    if rest == 0 {
        // As UpdateDisruptionAllowedCondition.
        let condition = json!({
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
            "observedGeneration": number(&old, "status", "observedGeneration"),
        });
        strategy::set_condition(&mut new, condition, &now);
    }
    if let Some(status) = new.get_mut("status") {
        status["disruptionsAllowed"] = rest.into();
        // The disruption controller counts the Pod as gone before it sees the deletion.
        status["disruptedPods"][call.name()] = now.into();
    }
    // Go's client inside of the server, which has no name of its own.
    let manager = "kube-apiserver";
    ownership::account_as(
        &call.server,
        budgets,
        Part::Status,
        manager,
        Some(&old),
        &mut new,
    );
    let replacement = replacement(budgets, Part::Status, &old, new)?;
    let replaced = update::replace(&call.server, budgets, budget, &replacement);
    Ok(replaced.map_or(Budget::Raced, |_| Budget::Used))
}

fn number(object: &Object, part: &str, member: &str) -> i64 {
    let number = object.get(part).and_then(|part| part.get(member)?.as_i64());
    number.unwrap_or(0)
}

/// Returns whether the status of a budget is that of its present spec.
fn is_observed(budget: &Object) -> bool {
    number(budget, "status", "observedGeneration") >= number(budget, "metadata", "generation")
}

/// Returns whether a budget lets Pods go that are not ready, without a disruption.
///
/// Source: `unhealthyPodEvictionPolicy` in `EvictionREST.Create`.
fn spares_unhealthy(budget: &Object) -> bool {
    let policy = budget
        .get("spec")
        .and_then(|spec| spec.get("unhealthyPodEvictionPolicy")?.as_str());
    let desired = number(budget, "status", "desiredHealthy");
    // By the default, IfHealthyBudget, they may go while the Pods that are ready are enough.
    policy == Some("AlwaysAllow")
        || desired > 0 && number(budget, "status", "currentHealthy") >= desired
}

/// Returns whether a Pod has the condition `Ready`.
fn is_ready(pod: &Stored) -> bool {
    let pod = pod.object();
    let conditions = pod
        .get("status")
        .and_then(|status| status.get("conditions"));
    let mut conditions = conditions.and_then(Value::as_array).into_iter().flatten();
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    ready.is_some_and(|condition| condition["status"] == "True")
}

/// Returns the sentence about a budget that allows no disruption.
///
/// Source: `checkAndDecrement`.
fn shortage(name: &str, budget: &Object) -> String {
    let conditions = budget
        .get("status")
        .and_then(|status| status.get("conditions")?.as_array());
    let mut conditions = conditions.into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // A condition without a message explains nothing.
    let explained = conditions
        .find(|condition| condition["type"] == "DisruptionAllowed")
        .filter(|condition| condition["status"] == "False")
        .map(|condition| (text(&condition["reason"]), text(&condition["message"])))
        .filter(|(_, message)| !message.is_empty());
    let healthy = |member: &str| number(budget, "status", member);
    let (current, desired) = (healthy("currentHealthy"), healthy("desiredHealthy"));
    let refused = format!("The disruption budget {name} does not allow evicting pods currently");
    match explained {
        // First, since the counts are not to be relied on if they could not be made.
        Some((reason, message)) if reason == "SyncFailed" => {
            format!("{refused} because it failed sync: {message}")
        }
        _ if current <= desired => format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        ),
        Some((reason, message)) => format!("{refused} ({reason}): {message}"),
        None => refused,
    }
}

fn budgets_of(call: &Call, budgets: &Resource, pod: &Stored) -> Vec<Arc<Stored>> {
    let range = Range {
        namespace: call.namespace(),
        ..Range::default()
    };
    let page = call.server.store.range(budgets.table, &range);
    let objects = page.map(|page| page.objects).unwrap_or_default();
    let selects = |budget: &Arc<Stored>| {
        let object = budget.object();
        object
            .get("spec")
            .and_then(|spec| spec.get("selector"))
            .and_then(selector_text)
            .and_then(|text| text.parse::<LabelSelector>().ok())
            .is_some_and(|selector| selector.matches(pod.labels()))
    };
    objects.into_iter().filter(selects).collect()
}
