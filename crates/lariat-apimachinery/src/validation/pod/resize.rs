//! What of a running Pod's resources may change.

use serde_json::Value;

use super::{annotations, whole};
use crate::object::Object;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::resources::amount;

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
        .unwrap_or_else(|| quality(&old));
    if was != quality(&spec) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        // The value is the class, at the path of the spec.
        causes.invalid_as(&spec, class.text(), detail);
    }
    check_support(context, &spec, causes);
    check_pod_level(&spec, &old, causes);
    // Containers are compared by position below.
    if !check_order(&spec, &old, causes) {
        return;
    }
    check_containers(&spec, &old, causes);
    let [new_resources, old_resources] = [&spec, &old].map(|spec| spec.get("resources"));
    let has_amounts = |resources: &Field<'_>| {
        let mut kinds = ["requests", "limits"].iter();
        kinds.any(|kind| !resources.get(kind).is_void())
    };
    // For Go, empty resources of the Pod differ from absent ones, so adding or removing them is a change.
    let changes_empty = !has_amounts(&new_resources)
        && !has_amounts(&old_resources)
        && new_resources.is_set() != old_resources.is_set();
    // Only if nothing else was found: other errors would change these parts too.
    if causes.count() == before && (changes_empty || fixed(&spec) != fixed(&old)) {
        causes.forbidden(&spec, ONLY);
    }
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
    if others(&new) != others(&was) {
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
    // Init containers first here, and last in `check_order`, as in Go.
    for list in ["initContainers", "containers"] {
        for (new, was) in spec.get(list).items().zip(old.get(list).items()) {
            let (resources, old_resources) = (new.get("resources"), was.get("resources"));
            for kind in ["requests", "limits"] {
                if loses(&resources.get(kind), &old_resources.get(kind)) {
                    let detail = format!("resource {kind} cannot be removed");
                    causes.forbidden(&resources.get(kind), &detail);
                }
            }
            if container_fixed(&new) != container_fixed(&was) {
                if list == "containers" {
                    causes.forbidden(spec, ONLY);
                } else {
                    let detail = "only cpu and memory resources for init or sidecar containers are \
                        mutable";
                    causes.forbidden(&new, detail);
                }
            }
            // An init container that ends cannot be restarted for a resize.
            let sidecar = list == "containers" || new.text_of("restartPolicy") == "Always";
            if new.value() != was.value() && !sidecar {
                check_restarts(&new, causes);
            }
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
fn others(resources: &Field<'_>) -> Object {
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
    kept
}

fn container_fixed(container: &Field<'_>) -> (Object, Object) {
    let mut kept = container.value().as_object().cloned().unwrap_or_default();
    kept.remove("resources");
    let mut others = others(&container.get("resources"));
    // In Go they are lost in the comparison.
    others.remove("claims");
    (kept, others)
}

fn fixed(spec: &Field<'_>) -> (Object, Object) {
    let mut kept = spec.value().as_object().cloned().unwrap_or_default();
    for list in ["containers", "initContainers", "resources"] {
        kept.remove(list);
    }
    (kept, others(&spec.get("resources")))
}

/// Returns the class of quality of service that the resources of a Pod give it.
fn quality(spec: &Field<'_>) -> &'static str {
    let whole = spec.get("resources");
    let all: Vec<Field<'_>> = if whole.is_void() {
        let lists = ["initContainers", "containers"].iter();
        let containers = lists.flat_map(|list| spec.get(list).items().collect::<Vec<_>>());
        containers.map(|each| each.get("resources")).collect()
    } else {
        // Resources of the Pod decide alone, if it has some.
        vec![whole]
    };
    let counted = |at: &Field<'_>, kind: &'static str, name: &'static str| {
        let at = at.get(kind).get(name);
        (amount(&at) > crate::quantity::Quantity::ZERO).then(|| amount(&at))
    };
    let names = ["cpu", "memory"];
    let any = all.iter().any(|at| {
        names.iter().any(|name| {
            ["requests", "limits"]
                .iter()
                .any(|kind| counted(at, kind, name).is_some())
        })
    });
    let equal = all.iter().all(|at| {
        names.iter().all(|name| {
            let limit = counted(at, "limits", name);
            let request = counted(at, "requests", name);
            // `ComputePodQOS`: a missing request is the limit.
            limit.is_some() && (request.is_none() || request == limit)
        })
    });
    match (any, equal) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
