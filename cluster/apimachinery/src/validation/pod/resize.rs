//! Resizing of running Pods.

use serde_json::Value;

use super::quality::quality_of_service;
use super::{annotations, whole};
use crate::object::Object;
use crate::validation::are_equal;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;

const ONLY: &str = "only cpu and memory resources are mutable";

pub(super) fn check(context: &Context<'_>, causes: &mut Causes) {
    let (Some(old), spec) = (context.old("spec"), context.get("spec")) else {
        return;
    };
    let before = causes.count();
    let old_annotations = context.old("metadata").map(|old| old.get("annotations"));
    // `ValidatePodResize`. The kubelet reads static Pods from a file, not from here.
    if old_annotations.is_some_and(|old| annotations::is_mirror(&old)) {
        causes.forbidden(&context.get(""), "static pods cannot be resized");
        return;
    }
    if old.get("os").text_of("name") == "windows" {
        causes.forbidden(&context.get(""), "windows pods cannot be resized");
        return;
    }
    whole::check(context, causes);
    let class = context.get("status").get("qosClass");
    let was = context.old("status").map(|old| old.text_of("qosClass"));
    let was = was
        // `GetPodQOS` takes the class of the status, and computes it only for a Pod without one.
        .filter(|was| !was.is_empty())
        .unwrap_or_else(|| quality_of_service(old.value()));
    if was != quality_of_service(spec.value()) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        // The value is the class, at the path of the spec.
        causes.invalid_as(&spec, class.text(), detail);
    }
    check_support(context, &spec, causes);
    let has_level = [&spec, &old].into_iter().any(has_pod_level);
    if has_level {
        check_pod_level(&spec, &old, causes);
    }
    // Containers are compared by position below.
    if !check_order(&spec, &old, causes) {
        return;
    }
    check_containers(&spec, &old, causes);
    // Only if nothing else was found: other errors would change these parts too.
    if causes.count() == before && !are_equal(&fixed(&spec, has_level), &fixed(&old, has_level)) {
        causes.forbidden(&spec, ONLY);
    }
}

/// Returns whether a Pod as a whole has amounts of resources.
fn has_pod_level(spec: &Field<'_>) -> bool {
    let resources = spec.get("resources");
    let mut kinds = ["requests", "limits"].iter();
    kinds.any(|kind| !resources.get(kind).is_void())
}

fn check_support(context: &Context<'_>, spec: &Field<'_>, causes: &mut Causes) {
    let status = context.old("status");
    let statuses = status.map(|status| status.get("containerStatuses"));
    let mut all = statuses.iter().flat_map(Field::items);
    let running = all.find(|status| status.get("state").has("running"));
    // `isPodResizeRequestSupported`: a kubelet that can resize reports resources of what runs.
    if running.is_some_and(|status| !status.has("resources")) {
        causes.forbidden(spec, "Pod running on node without support for resize");
    }
}

/// Returns whether resources are missing that were there.
fn loses(new: &Field<'_>, old: &Field<'_>) -> bool {
    old.entries().any(|(name, _)| !new.has(name))
}

fn check_pod_level(spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let (new, was) = (spec.get("resources"), old.get("resources"));
    if was.is_set() && !new.is_set() {
        causes.forbidden(&new, "pod-level resources cannot be removed");
        return;
    }
    for kind in ["requests", "limits"] {
        if loses(&new.get(kind), &was.get(kind)) {
            let detail = format!("pod-level resource {kind} cannot be removed");
            causes.forbidden(&new.get(kind), &detail);
        }
    }
    if !are_equal(&others(&new), &others(&was)) {
        causes.forbidden(
            spec,
            "only cpu and memory resources are mutable at pod-level",
        );
    }
}

fn check_order(spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) -> bool {
    let before = causes.count();
    for list in ["containers", "initContainers"] {
        let (new, was) = (spec.get(list), old.get(list));
        if new.list().len() != was.list().len() {
            let detail = format!("{list} may not be added or removed on resize");
            causes.forbidden(&new, &detail);
            continue;
        }
        for (new, was) in new.items().zip(was.items()) {
            if new.text_of("name") != was.text_of("name") {
                let detail = format!("{list} may not be renamed or reordered on resize");
                causes.forbidden(&new.get("name"), &detail);
            }
        }
    }
    causes.count() == before
}

fn check_containers(spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let pairs = |list: &'static str| spec.get(list).items().zip(old.get(list).items());
    for (new, was) in pairs("initContainers").chain(pairs("containers")) {
        // `validateContainerResize`.
        let (resources, old_resources) = (new.get("resources"), was.get("resources"));
        for kind in ["requests", "limits"] {
            if loses(&resources.get(kind), &old_resources.get(kind)) {
                let detail = format!("resource {kind} cannot be removed");
                causes.forbidden(&resources.get(kind), &detail);
            }
        }
    }
    for (new, was) in pairs("containers") {
        if !is_resize(&new, &was) {
            causes.forbidden(spec, ONLY);
        }
    }
    for (new, was) in pairs("initContainers") {
        if !is_resize(&new, &was) {
            let detail = "only cpu and memory resources for init or sidecar containers are mutable";
            causes.forbidden(&new, detail);
        }
        // An init container that ends cannot be restarted for a resize.
        let is_sidecar = new.text_of("restartPolicy") == "Always";
        if !is_sidecar && !are_equal(new.value(), was.value()) {
            check_restarts(&new, causes);
        }
    }
}

fn check_restarts(container: &Field<'_>, causes: &mut Causes) {
    let policies = container.get("resizePolicy");
    for _ in policies
        .items()
        .filter(|each| each.text_of("restartPolicy") == "RestartContainer")
    {
        let detail = "non-sidecar init containers with a resize policy of RestartContainer cannot \
            be resized";
        causes.forbidden(container, detail);
    }
}

/// Returns resources other than processors and memory.
fn others(resources: &Field<'_>) -> Value {
    let mut kept = resources.value().as_object().cloned().unwrap_or_default();
    for kind in ["requests", "limits"] {
        let amounts = kept.get_mut(kind).and_then(Value::as_object_mut);
        if let Some(amounts) = amounts {
            amounts.retain(|name, _| !matches!(name.as_str(), "cpu" | "memory"));
        }
        if kept
            .get(kind)
            .and_then(Value::as_object)
            // A list that had processors and memory only is the same as none.
            .is_some_and(Object::is_empty)
        {
            kept.remove(kind);
        }
    }
    kept.into()
}

/// Returns whether a container differs in amounts of processors and memory only.
fn is_resize(new: &Field<'_>, old: &Field<'_>) -> bool {
    let fixed = |container: &Field<'_>| {
        let mut kept = container.value().as_object().cloned().unwrap_or_default();
        kept.insert("resources".into(), others(&container.get("resources")));
        kept
    };
    let (mut new, old) = (fixed(new), fixed(old));
    // `dropCPUMemoryResourcesFromContainer` drops the claims of the new container alone, so one with claims is never
    // resized.
    let resources = new.get_mut("resources").and_then(Value::as_object_mut);
    resources.map(|resources| resources.remove("claims"));
    are_equal(&new.into(), &old.into())
}

/// Returns the part of a Pod that no resize changes, aside from containers.
fn fixed(spec: &Field<'_>, has_level: bool) -> Value {
    let mut kept = spec.value().as_object().cloned().unwrap_or_default();
    for list in ["containers", "initContainers"] {
        kept.remove(list);
    }
    // Resources of the Pod that have no amounts differ from absent ones.
    if has_level || spec.has("resources") {
        kept.insert("resources".into(), others(&spec.get("resources")));
    }
    kept.into()
}
