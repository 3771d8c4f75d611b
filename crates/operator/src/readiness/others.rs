//! The rules of kinds without replicas.

use serde_json::Value;

use super::fields::Fields;
use super::readiness::Readiness;

pub(super) fn job(object: Fields<'_>) -> Readiness {
    // `FailureTarget` is not final: the Pods of the Job are still being terminated.
    if let Some(failed) = object.true_condition("Failed") {
        return Readiness::failed(failed.message());
    }
    let is_done = object.true_condition("Complete").is_some();
    if is_done || object.true_condition("Suspended").is_some() {
        return Readiness::Ready;
    }
    if !object.has("/status/startTime") {
        return Readiness::in_progress("the Job has not started");
    }
    let parallelism = object.number("/spec/parallelism").unwrap_or(1);
    let wanted = object.number("/spec/completions").unwrap_or(parallelism);
    let done = object.count("succeeded");
    Readiness::in_progress(format!("{done} of {wanted} Pods have succeeded"))
}

pub(super) fn pod(object: Fields<'_>) -> Readiness {
    let message = object.text("/status/message");
    match object.text("/status/phase") {
        "Succeeded" => Readiness::Ready,
        "Failed" if message.is_empty() => Readiness::failed("the Pod has failed"),
        "Failed" => Readiness::failed(message),
        "Running" => running_pod(object),
        "Pending" => match object.condition("PodScheduled") {
            Some(found) if found.is("False") => Readiness::in_progress(found.message()),
            _ => Readiness::in_progress("the Pod is pending"),
        },
        _ => Readiness::in_progress("the Pod has no phase yet"),
    }
}

fn running_pod(object: Fields<'_>) -> Readiness {
    if object.true_condition("Ready").is_some() {
        return Readiness::Ready;
    }
    let is_crashing = |status: &&Value| {
        status
            .pointer("/state/waiting/reason")
            .and_then(Value::as_str)
            == Some("CrashLoopBackOff")
    };
    let mut containers = object.list("/status/containerStatuses").iter();
    if let Some(crashing) = containers.find(is_crashing) {
        let name = crashing["name"].as_str().unwrap_or_default();
        return Readiness::failed(format!("the container {name} is in CrashLoopBackOff"));
    }
    match object.condition("Ready") {
        Some(found) => Readiness::in_progress(found.message()),
        None => Readiness::in_progress("the Pod is not ready"),
    }
}

pub(super) fn claim(object: Fields<'_>) -> Readiness {
    match object.text("/status/phase") {
        "Bound" => Readiness::Ready,
        "" => Readiness::in_progress("the claim is not bound"),
        phase => Readiness::in_progress(format!("the claim is not bound ({phase})")),
    }
}

pub(super) fn service(object: Fields<'_>) -> Readiness {
    let is_balancer = object.text("/spec/type") == "LoadBalancer";
    if is_balancer && object.text("/spec/clusterIP").is_empty() {
        return Readiness::in_progress("the load balancer has no cluster IP");
    }
    Readiness::Ready
}

pub(super) fn disruption_budget(object: Fields<'_>) -> Readiness {
    if object.has("/status/observedGeneration") {
        return Readiness::Ready;
    }
    Readiness::in_progress("the allowed disruptions are not computed yet")
}

pub(super) fn definition(object: Fields<'_>) -> Readiness {
    if let Some(refused) = object
        .condition("NamesAccepted")
        .filter(|found| found.is("False"))
    {
        return Readiness::failed(refused.message());
    }
    match object.condition("Established") {
        Some(found) if found.is("True") => Readiness::Ready,
        Some(found) => Readiness::in_progress(found.message()),
        None => Readiness::in_progress("the CRD is not established yet"),
    }
}
