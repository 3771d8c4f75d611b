//! Updates of Jobs.

use serde_json::Value;

use super::{failure, success};
use crate::validation::are_equal;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::structs::Members;

// `ValidateJobSpecUpdate`.
const FIXED: [&str; 3] = ["completionMode", "backoffLimitPerIndex", "managedBy"];

const FIXED_STRUCTS: [(&str, Members); 2] = [
    ("podFailurePolicy", failure::POLICY),
    ("successPolicy", success::POLICY),
];

pub(super) fn check(context: &Context<'_>, causes: &mut Causes) {
    let Some(old) = context.old("spec") else {
        return;
    };
    let spec = context.get("spec");
    check_completions(&spec, &old, causes);
    for name in FIXED {
        check_fixed(&spec.get(name), &old.get(name), causes);
    }
    for (name, members) in FIXED_STRUCTS {
        causes.check_immutable_struct(&spec.get(name), &old.get(name), members);
    }
    causes.check_immutable_selector(&spec.get("selector"), &old.get("selector"));
    check_template(context, &spec, &old, causes);
}

/// Checks a member that is a pointer in Go; messages show a missing one as null.
fn check_fixed(at: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    if at.value() != old.value() {
        causes.invalid_as(at, at.value().clone(), "field is immutable");
    }
}

fn check_completions(spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let (new, old) = (spec.get("completions"), old.get("completions"));
    if spec.text_of("completionMode") != "Indexed" {
        check_fixed(&new, &old, causes);
    } else if new.is_set() && new.value() != old.value() && new.int() != spec.int_of("parallelism")
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        causes.invalid(&new, detail);
    }
}

/// Checks the template, of which only a Job that stands still can change some.
fn check_template(context: &Context<'_>, spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let status = context.old("status");
    // The old status decides, since this write cannot change it.
    let stands = old.is_true("suspend") && status.is_none_or(|status| has_no_pods(&status));
    let new = spec.get("template");
    let mut before = old.member("template").clone();
    if stands {
        free_scheduling(&mut before, new.value());
        free_resources(&mut before, new.value());
        // `validatePodResourceUpdatesOnly` compares the spec alone, so other metadata are free here.
        if !are_equal(&before["spec"], new.member("spec")) {
            let at = spec.get("template.spec").with(new.member("spec"));
            causes.invalid(&at, "field is immutable");
        }
    } else if !are_equal(&before, new.value()) {
        causes.invalid(&new, "field is immutable");
    }
}

/// Returns whether a suspended Job never started, or has ended all its Pods.
fn has_no_pods(status: &Field<'_>) -> bool {
    let is_suspended =
        |each: Field<'_>| each.text_of("type") == "Suspended" && each.text_of("status") == "True";
    // The condition says that the controller has seen the suspension, not only that it was asked for.
    let stopped = !status.has("startTime") || status.get("conditions").items().any(is_suspended);
    stopped && status.int_of("active").unwrap_or(0) == 0
}

/// Copies the members that say where Pods may run.
fn free_scheduling(old: &mut Value, new: &Value) {
    take(old, new, "/spec/affinity", &["nodeAffinity"]);
    if old["spec"]
        .get("affinity")
        .and_then(Value::as_object)
        .is_some_and(serde_json::Map::is_empty)
        // Clearing an affinity that had node affinity only leaves an empty one, which counts as none.
        && new["spec"]["affinity"].is_null()
    {
        take(old, new, "/spec", &["affinity"]);
    }
    take(
        old,
        new,
        "/spec",
        &["nodeSelector", "tolerations", "schedulingGates"],
    );
    take(old, new, "/metadata", &["annotations", "labels"]);
}

/// Copies the resources of containers with the same names.
fn free_resources(old: &mut Value, new: &Value) {
    for list in ["containers", "initContainers"] {
        let (old, new) = (
            old["spec"].get_mut(list).and_then(Value::as_array_mut),
            new["spec"][list].as_array(),
        );
        let (Some(old), Some(new)) = (old, new) else {
            continue;
        };
        if old.len() != new.len() {
            continue;
        }
        for (old, new) in old.iter_mut().zip(new) {
            if old["name"] == new["name"] {
                take(old, new, "", &["resources"]);
            }
        }
    }
}

/// Copies members of an object within another.
fn take(old: &mut Value, new: &Value, within: &str, names: &[&str]) {
    if old.pointer(within).is_none() && new.pointer(within).is_some_and(Value::is_object) {
        let (above, name) = within.rsplit_once('/').unwrap_or_default();
        if let Some(above) = old.pointer_mut(above).and_then(Value::as_object_mut) {
            above.insert(name.to_owned(), serde_json::Map::new().into());
        }
    }
    let Some(old) = old.pointer_mut(within).and_then(Value::as_object_mut) else {
        return;
    };
    for name in names {
        match new.pointer(within).and_then(|new| new.get(name)) {
            Some(value) => old.insert((*name).to_owned(), value.clone()),
            None => old.remove(*name),
        };
    }
}
