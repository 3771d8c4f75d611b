//! The controller of Deployments: a ReplicaSet for each template, and the rollout from one to the next.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/deployment`. It adopts a ReplicaSet without a controller only
//! where that has the name of one it needs.

use std::time::Duration;

use serde_json::{Value, json};

use super::child::Child;
use super::conditions::{self, Condition};
use super::events;
use super::kind::Kind;
use super::reconcile::{Reconcile, Requeue};
use super::refusal::Refusal;
use super::replica_set::FAILURE;
use super::rollout::Rollout;
use super::template;

const REVISION: &str = "deployment.kubernetes.io/revision";
const HASH: &str = "pod-template-hash";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

pub(super) fn reconcile(deployment: &Reconcile<'_>) -> Requeue {
    let mut sets = deployment.children(Kind::ReplicaSet);
    sets.sort_by(|a, b| {
        let age = |set: &Child| set.text("/metadata/creationTimestamp").to_owned();
        (age(a), a.name()).cmp(&(age(b), b.name()))
    });
    // As FindNewReplicaSet: the oldest, if several sets have the template.
    let at = sets.iter().position(|set| is_of_template(set, deployment));
    let new = at.map(|at| sets.remove(at));
    let rollout = Rollout::new(deployment, new, sets);
    if deployment.stored.is_deleting() {
        return sync_status(&rollout);
    }
    if rollout.new.is_none() && deployment.at("/spec/paused") != true {
        // The new set is a change, after which the Deployment is reconciled again.
        if let Some(next) = ensure_set(&rollout) {
            return next;
        }
    }
    // The template was used before: a rollback makes its set the newest one.
    if let Some(new) = rollout
        .new
        .as_ref()
        .filter(|new| number_of(new) < revision(&rollout))
    {
        return Requeue::from(renumber(&rollout, new));
    }
    rollout
        .advance()
        .or(clean_up(&rollout))
        .or(sync_status(&rollout))
}

fn is_of_template(set: &Child, deployment: &Reconcile<'_>) -> bool {
    let mut template = set.at("/spec/template").clone();
    // As EqualIgnoreHash: the label is written into the set's template only.
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    template == *deployment.at("/spec/template")
}

fn number_of(set: &Child) -> i64 {
    set.annotation(REVISION).parse().unwrap_or(0)
}

/// Returns the revision of the present template: one more than those of all others.
fn revision(rollout: &Rollout<'_>) -> i64 {
    rollout.old.iter().map(number_of).max().unwrap_or(0) + 1
}

/// Creates or adopts the ReplicaSet of the template.
///
/// `None` if its namespace is being deleted; another refusal is reported in the status.
fn ensure_set(rollout: &Rollout<'_>) -> Option<Requeue> {
    let deployment = rollout.deployment;
    let collisions = deployment.number("/status/collisionCount").unwrap_or(0);
    let hash = template::hash(deployment.at("/spec/template"), collisions);
    let name = format!("{}-{hash}", deployment.name());
    let Some(taken) = deployment.find(Kind::ReplicaSet, &name) else {
        return match create_set(rollout, &name, &hash) {
            Ok(()) => Some(sync_status(rollout)),
            Err(refusal) if refusal.is_end => None,
            Err(refusal) => Some(report(deployment, &name, &refusal)),
        };
    };
    let written = if is_free(&taken) && is_of_template(&taken, deployment) {
        let reference = deployment.controller_reference();
        deployment.edit(&taken, |set| {
            let references = &mut set["metadata"]["ownerReferences"];
            match references.as_array_mut() {
                Some(references) => references.push(reference),
                None => *references = json!([reference]),
            }
        })
    } else {
        // Another set has the name, so the next reconcile hashes to another one.
        let mut status = deployment.at("/status").clone();
        status["collisionCount"] = (collisions + 1).into();
        deployment.write_status(status)
    };
    Some(Requeue::from(written))
}

/// Returns whether a set has no controller and is not being deleted.
fn is_free(set: &Child) -> bool {
    let references = set.at("/metadata/ownerReferences").as_array();
    !set.is_going()
        && references
            .into_iter()
            .flatten()
            .all(|reference| reference["controller"] != true)
}

fn create_set(rollout: &Rollout<'_>, name: &str, hash: &str) -> Result<(), Refusal> {
    let deployment = rollout.deployment;
    let mut pods = deployment.at("/spec/template").clone();
    template::label(&mut pods, HASH, hash);
    let mut selector = deployment.at("/spec/selector").clone();
    selector["matchLabels"][HASH] = hash.into();
    let mut set = json!({
        "kind": "ReplicaSet", "apiVersion": "apps/v1",
        "metadata": {
            "name": name, "labels": pods["metadata"]["labels"],
            "ownerReferences": [deployment.controller_reference()],
        },
        "spec": {
            "replicas": rollout.new_replicas(), "selector": selector, "template": pods,
            "minReadySeconds": deployment.number("/spec/minReadySeconds").unwrap_or(0),
        },
    });
    let own = deployment.at("/metadata/annotations").as_object();
    for (name, value) in own
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != LAST_APPLIED)
    {
        template::annotate(&mut set, name, value.as_str().unwrap_or_default());
    }
    let all = rollout.replicas;
    for (name, value) in [
        (REVISION, revision(rollout)),
        ("deployment.kubernetes.io/desired-replicas", all),
        ("deployment.kubernetes.io/max-replicas", all + rollout.surge),
    ] {
        template::annotate(&mut set, name, &value.to_string());
    }
    deployment.try_create(Kind::ReplicaSet, &set)
}

/// Reports that the set of the present template is refused.
fn report(deployment: &Reconcile<'_>, name: &str, refusal: &Refusal) -> Requeue {
    const REASON: &str = "ReplicaSetCreateError";
    let reason = &refusal.message;
    let message = format!("Failed to create new replica set {name:?}: {reason}");
    events::warn(deployment, REASON, &message);
    let mut status = match deployment.at("/status") {
        status @ Value::Object(_) => status.clone(),
        _ => json!({}),
    };
    let condition = Condition::new("Progressing", false).because(REASON, message);
    let now = deployment.now();
    condition.set(&mut status["conditions"], &now, Some("lastUpdateTime"));
    Requeue::from(deployment.write_status(status))
}

/// Sets the newest revision on the set of a template that was used before.
fn renumber(rollout: &Rollout<'_>, new: &Child) -> crate::control::write::WriteOutcome {
    let revision = revision(rollout).to_string();
    let part = crate::strategy::Part::Main;
    let writer = rollout.deployment.writer();
    writer.update(&new.resource, part, &new.stored, |object| {
        let mut set = Value::Object(std::mem::take(object));
        template::annotate(&mut set, REVISION, &revision);
        if let Value::Object(set) = set {
            *object = set;
        }
    })
}

/// Deletes old sets beyond the limit of the history, once the rollout is over.
fn clean_up(rollout: &Rollout<'_>) -> Requeue {
    if !rollout.is_complete() {
        return Requeue::OnChange;
    }
    let given = rollout.deployment.number("/spec/revisionHistoryLimit");
    let limit = usize::try_from(given.unwrap_or(10)).unwrap_or(0);
    let is_empty = |set: &&Child| {
        set.number("/status/replicas") == 0 && set.number("/spec/replicas") == 0 && !set.is_going()
    };
    let mut empty: Vec<&Child> = rollout.old.iter().filter(is_empty).collect();
    empty.sort_by_key(|set| number_of(set));
    let surplus = empty.len().saturating_sub(limit);
    let deletions = empty[..surplus].iter();
    deletions.fold(Requeue::OnChange, |next, set| {
        next.or(Requeue::from(rollout.deployment.delete(set, None)))
    })
}

fn sync_status(rollout: &Rollout<'_>) -> Requeue {
    let deployment = rollout.deployment;
    let (status, next) = status(rollout);
    let revision = rollout.new.as_ref().map(|new| new.annotation(REVISION));
    let writer = deployment.writer();
    let written = writer.store(&deployment.resource, &deployment.stored, |object| {
        object.insert("status".into(), status);
        if let Some(revision) = revision.filter(|revision| !revision.is_empty()) {
            let mut value = Value::Object(std::mem::take(object));
            template::annotate(&mut value, REVISION, revision);
            if let Value::Object(annotated) = value {
                *object = annotated;
            }
        }
    });
    next.or(Requeue::from(written))
}

fn status(rollout: &Rollout<'_>) -> (Value, Requeue) {
    let deployment = rollout.deployment;
    let all = rollout.sum("/status/replicas");
    let available = rollout.sum("/status/availableReplicas");
    let mut status = json!({"observedGeneration": deployment.generation()});
    let counts = [
        ("replicas", all),
        ("updatedReplicas", rollout.new_number("/status/replicas")),
        ("readyReplicas", rollout.sum("/status/readyReplicas")),
        ("availableReplicas", available),
        (
            "unavailableReplicas",
            rollout.sum("/spec/replicas") - available,
        ),
        (
            "collisionCount",
            deployment.number("/status/collisionCount").unwrap_or(0),
        ),
    ];
    // Go leaves counts of zero out.
    for (member, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        status[member] = count.into();
    }
    let mut list = deployment.at("/status/conditions").clone();
    let now = deployment.now();
    let condition = if available >= rollout.replicas - rollout.unavailable {
        Condition::new("Available", true).because(
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    } else {
        Condition::new("Available", false).because(
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    condition.set(&mut list, &now, Some("lastUpdateTime"));
    let next = set_progressing(rollout, &mut list, &now);
    set_failure(rollout, &mut list);
    status["conditions"] = list;
    (status, next)
}

/// Copies the condition about refused Pods from a set, the new one before others.
// `getReplicaFailures` and `SetDeploymentCondition`.
fn set_failure(rollout: &Rollout<'_>, list: &mut Value) {
    let sets = rollout.new.iter().chain(&rollout.old);
    let mut failures =
        sets.filter_map(|set| conditions::find(set.at("/status/conditions"), FAILURE));
    let Some(failure) = failures.next() else {
        return conditions::remove(list, FAILURE);
    };
    let known = conditions::find(list, FAILURE);
    if known.is_some_and(|known| {
        known["status"] == failure["status"] && known["reason"] == failure["reason"]
    }) {
        return;
    }
    let mut failure = failure.clone();
    failure["lastUpdateTime"] = failure["lastTransitionTime"].clone();
    conditions::remove(list, FAILURE);
    if let Some(list) = list.as_array_mut() {
        list.push(failure);
    }
}

/// Sets the condition `Progressing`; requeues for the deadline of the rollout.
fn set_progressing(rollout: &Rollout<'_>, list: &mut Value, now: &str) -> Requeue {
    let deployment = rollout.deployment;
    let Some(new) = &rollout.new else {
        return Requeue::OnChange;
    };
    let name = new.name();
    let known = conditions::find(list, "Progressing");
    let reason = known.and_then(|each| each["reason"].as_str());
    let since = known.and_then(|each| each["lastUpdateTime"].as_str());
    let progressing = |is_true, reason, message: String| {
        Condition::new("Progressing", is_true).because(reason, message)
    };
    if rollout.is_complete() {
        let message = format!("ReplicaSet \"{name}\" has successfully progressed.");
        progressing(true, "NewReplicaSetAvailable", message).set(list, now, Some("lastUpdateTime"));
        return Requeue::OnChange;
    }
    // Other reasons are left from an earlier rollout.
    let moved = rollout.has_moved();
    if moved
        || !matches!(
            reason,
            Some("ReplicaSetUpdated" | "ProgressDeadlineExceeded")
        )
    {
        let message = format!("ReplicaSet \"{name}\" is progressing.");
        let condition = progressing(true, "ReplicaSetUpdated", message);
        if moved {
            // The time is updated with the progress, even if nothing else of the condition changes.
            let known = list.as_array_mut().into_iter().flatten();
            for each in known.filter(|each| each["type"] == "Progressing") {
                each["lastUpdateTime"] = now.into();
            }
        }
        condition.set(list, now, Some("lastUpdateTime"));
        return Requeue::OnChange;
    }
    let seconds = deployment
        .at("/spec/progressDeadlineSeconds")
        .as_u64()
        .unwrap_or(600);
    let deadline = since.and_then(|since| deployment.until(since, Duration::from_secs(seconds)));
    if let Some(at) = deadline {
        return Requeue::At(at);
    }
    let message = format!("ReplicaSet \"{name}\" has timed out progressing.");
    progressing(false, "ProgressDeadlineExceeded", message).set(list, now, Some("lastUpdateTime"));
    Requeue::OnChange
}
