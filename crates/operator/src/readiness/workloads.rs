//! The rules of kinds with replicas.

use super::fields::Fields;
use super::readiness::Readiness;

/// A number of replicas: their state, how many there are, and how many there should be.
type Shortage = (&'static str, i64, i64);

/// Returns the first number that is too small, as a readiness.
///
/// It also returns that the controller has not observed the object yet.
fn first_shortage<const N: usize>(object: Fields<'_>, numbers: [Shortage; N]) -> Option<Readiness> {
    // Before that all numbers are missing. They must not be read as zeros that a controller has counted.
    let is_seen = object.has("/status/observedGeneration") || !object.has("/metadata/generation");
    if !is_seen {
        return Some(Readiness::in_progress(
            "its controller has not observed it yet",
        ));
    }
    let short = numbers
        .into_iter()
        .find(|(_, there, wanted)| there < wanted);
    short.map(|(what, there, wanted)| {
        Readiness::in_progress(format!("{there} of {wanted} replicas are {what}"))
    })
}

/// Returns that replicas are left beyond those that are wanted, if there are any.
fn surplus(object: Fields<'_>, wanted: i64) -> Option<Readiness> {
    let left = object.count("replicas") - wanted;
    (left > 0).then(|| Readiness::in_progress(format!("{left} old replicas are left")))
}

fn wanted_replicas(object: Fields<'_>) -> i64 {
    object.number("/spec/replicas").unwrap_or(1)
}

pub(super) fn deployment(object: Fields<'_>) -> Readiness {
    let wanted = wanted_replicas(object);
    // The deadline comes first: a rollout that has given up would otherwise look like one in progress.
    let progressing = object.condition("Progressing");
    if let Some(exceeded) = progressing.filter(|found| found.has_reason("ProgressDeadlineExceeded"))
    {
        return Readiness::failed(exceeded.message());
    }
    let updated = object.count("updatedReplicas");
    let numbers = [
        ("created", object.count("replicas"), wanted),
        ("updated", updated, wanted),
    ];
    let available = [
        ("available", object.count("availableReplicas"), updated),
        ("ready", object.count("readyReplicas"), wanted),
    ];
    first_shortage(object, numbers)
        .or_else(|| surplus(object, wanted))
        .or_else(|| first_shortage(object, available))
        .unwrap_or_else(|| match object.condition("Available") {
            Some(found) if !found.is("True") => Readiness::in_progress(found.message()),
            _ => Readiness::Ready,
        })
}

pub(super) fn stateful_set(object: Fields<'_>) -> Readiness {
    let wanted = wanted_replicas(object);
    let numbers = [
        ("created", object.count("replicas"), wanted),
        ("ready", object.count("readyReplicas"), wanted),
    ];
    if let Some(short) = first_shortage(object, numbers).or_else(|| surplus(object, wanted)) {
        return short;
    }
    if object.text("/spec/updateStrategy/type") == "OnDelete" {
        // Pods of this strategy are updated only when a user deletes them.
        return Readiness::Ready;
    }
    let partition = object
        .number("/spec/updateStrategy/rollingUpdate/partition")
        .filter(|partition| *partition > 0);
    if let Some(partition) = partition {
        let to_update = wanted.saturating_sub(partition).max(0);
        let numbers = [("updated", object.count("updatedReplicas"), to_update)];
        return first_shortage(object, numbers).unwrap_or(Readiness::Ready);
    }
    if object.text("/status/currentRevision") != object.text("/status/updateRevision") {
        let updated = object.count("updatedReplicas");
        let message = format!("{updated} of {wanted} replicas are updated");
        return Readiness::in_progress(message);
    }
    Readiness::Ready
}

pub(super) fn daemon_set(object: Fields<'_>) -> Readiness {
    let wanted = object.count("desiredNumberScheduled");
    let is_by_hand = object.text("/spec/updateStrategy/type") == "OnDelete";
    let updated = object.count("updatedNumberScheduled");
    let numbers = [
        ("scheduled", object.count("currentNumberScheduled"), wanted),
        ("updated", if is_by_hand { wanted } else { updated }, wanted),
        ("available", object.count("numberAvailable"), wanted),
        ("ready", object.count("numberReady"), wanted),
    ];
    first_shortage(object, numbers).unwrap_or(Readiness::Ready)
}

pub(super) fn replica_set(object: Fields<'_>) -> Readiness {
    let wanted = wanted_replicas(object);
    if let Some(failure) = object.true_condition("ReplicaFailure") {
        return Readiness::in_progress(failure.message());
    }
    let numbers = [
        ("created", object.count("replicas"), wanted),
        ("labelled", object.count("fullyLabeledReplicas"), wanted),
        ("available", object.count("availableReplicas"), wanted),
        ("ready", object.count("readyReplicas"), wanted),
    ];
    first_shortage(object, numbers)
        .or_else(|| surplus(object, wanted))
        .unwrap_or(Readiness::Ready)
}
