//! Updates of Pods.

use serde_json::Value;

use super::{annotations, pod_context, scheduling, whole};
use crate::object::Object;
use crate::validation::are_equal;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::dump;
use crate::validation::field::Field;
use crate::validation::structs::{self, Members, Shape};

pub(super) fn check(context: &Context<'_>, causes: &mut Causes) {
    whole::check(context, causes);
    check_annotations(context, causes);
    let (Some(old), spec) = (context.old("spec"), context.get("spec")) else {
        return;
    };
    for list in ["containers", "initContainers"] {
        if !check_images(&spec.get(list), &old.get(list), causes) {
            // `ValidatePodUpdate` cannot compare containers of lists of different lengths.
            return;
        }
    }
    if !check_deadline(&spec, &old, causes) {
        return;
    }
    check_tolerations(&spec.get("tolerations"), &old.get("tolerations"), causes);
    check_gates(
        &spec.get("schedulingGates"),
        &old.get("schedulingGates"),
        causes,
    );
    if !are_equal(spec.value(), old.value()) {
        check_rest(&spec, &old, causes);
    }
}

/// Checks the annotations of a changed Pod, of which some are fixed with it.
// `ValidatePodSpecificAnnotationUpdates`, after which an update of the spec has the causes about annotations twice.
pub(super) fn check_annotations(context: &Context<'_>, causes: &mut Causes) {
    let annotations = context.get("metadata").get("annotations");
    if let Some(old) = context.old("metadata") {
        let old = old.get("annotations");
        annotations::check_update(&annotations, &old, causes);
        annotations::check(&annotations, Some(&old), &context.get("spec"), causes);
    }
}

/// Checks the images of containers; returns whether their number is unchanged.
fn check_images(list: &Field<'_>, old: &Field<'_>, causes: &mut Causes) -> bool {
    if list.list().len() != old.list().len() {
        causes.forbidden(list, "pod updates may not add or remove containers");
        return false;
    }
    for each in list.items() {
        causes.check_given(&each.get("image"), "");
        pod_context::check_image(&each, causes);
    }
    true
}

/// Checks that the deadline only comes nearer, and returns whether to go on.
fn check_deadline(spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) -> bool {
    let at = spec.get("activeDeadlineSeconds");
    match (at.int(), old.int_of("activeDeadlineSeconds")) {
        // Zero is allowed here and not at the creation: it ends the Pod.
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            causes.check_between(&at, 0, i32::MAX.into());
            false
        }
        (Some(seconds), Some(was)) if seconds > was => {
            causes.invalid(&at, "must be less than or equal to previous value");
            false
        }
        // The only one of the three after which the check goes on.
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            causes.invalid(&at, detail);
            true
        }
        _ => true,
    }
}

/// Tolerations come, and neither go nor change, except for their seconds.
fn check_tolerations(list: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let without_seconds = |value: &Value| {
        let mut toleration = value.clone();
        if let Some(members) = toleration.as_object_mut() {
            members.remove("tolerationSeconds");
        }
        toleration
    };
    let now: Vec<Value> = list.list().iter().map(without_seconds).collect();
    // `validateOnlyAddedTolerations`.
    let lost = |was: &Value| !now.contains(&without_seconds(was));
    if old.list().iter().any(lost) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        causes.forbidden(list, detail);
        return;
    }
    scheduling::check_tolerations(list, causes);
}

/// Gates go, and none comes.
fn check_gates(gates: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let all: Vec<Field<'_>> = gates.items().collect();
    for (index, gate) in all.iter().enumerate() {
        let name = gate.text_of("name");
        let is_named = |other: &Field<'_>| other.text_of("name") == name;
        // `validateOnlyDeletedSchedulingGates` keeps the last of a name.
        if !old.items().any(|was| is_named(&was)) && !all[index + 1..].iter().any(is_named) {
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            causes.forbidden(&gate.get("name"), &detail);
        }
    }
}

const FIXED: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions \
    to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
    was previously negative)";

/// Refuses changes of immutable fields of a Pod.
fn check_rest(spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let mut free = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    let was = old.int_of("terminationGracePeriodSeconds");
    // Negative periods were possible once, and mean one second.
    if was.is_some_and(|was| was < 0) && spec.int_of("terminationGracePeriodSeconds") == Some(1) {
        free.push("terminationGracePeriodSeconds");
    }
    let gated = !old.get("schedulingGates").is_void();
    // Before scheduling, where a Pod may run can still be narrowed.
    if gated {
        free.push("nodeSelector");
        check_node_selector(&spec.get("nodeSelector"), &old.get("nodeSelector"), causes);
    }
    let affinity = |spec: &Field<'_>| spec.get("affinity").member("nodeAffinity").clone();
    let narrows = gated && affinity(spec) != affinity(old);
    if narrows {
        check_node_affinity(spec, old, causes);
    }
    let (now, was) = (fixed(spec, &free, narrows), fixed(old, &free, narrows));
    if !are_equal(&now.clone().into(), &was.clone().into()) {
        let now = dump::with_old(now.into(), old.value(), &was.into());
        let difference = dump::diff("PodSpec", &internal(old.value()), &internal(&now));
        causes.forbidden(spec, &format!("{FIXED}\n{difference}"));
    }
}

/// Returns a spec with the host namespaces in the places of the internal type.
// `Convert_v1_PodSpec_To_core_PodSpec`.
fn internal(spec: &Value) -> Value {
    let mut context = match &spec["securityContext"] {
        Value::Object(context) => context.clone(),
        _ => Object::new(),
    };
    for name in [
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "shareProcessNamespace",
        "hostUsers",
    ] {
        context.extend(spec.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    let mut spec = spec.clone();
    if let Some(members) = spec.as_object_mut() {
        members.insert("securityContext".into(), context.into());
    }
    spec
}

/// Returns the parts of a spec that may not change.
fn fixed(spec: &Field<'_>, free: &[&str], narrows: bool) -> Object {
    let mut kept = spec.value().as_object().cloned().unwrap_or_default();
    kept.retain(|member, _| !free.contains(&member.as_str()));
    for list in ["containers", "initContainers"] {
        let containers = kept.get_mut(list).and_then(Value::as_array_mut);
        for each in containers.into_iter().flatten() {
            each.as_object_mut().map(|each| each.remove("image"));
        }
    }
    let affinity = kept.get_mut("affinity").filter(|_| narrows);
    if let Some(affinity) = affinity.and_then(Value::as_object_mut) {
        affinity.remove("nodeAffinity");
        // An affinity of which that changed and that has nothing else counts as none.
        if affinity.is_empty() {
            kept.remove("affinity");
        }
    }
    kept
}

fn check_node_selector(selector: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    if old
        .entries()
        .any(|(key, was)| selector.member(key) != was.value())
    {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        causes.invalid(selector, detail);
    }
}

const REQUIREMENT: Members = &[
    ("key", "Key", Shape::Text),
    ("operator", "Operator", Shape::Text),
    ("values", "Values", Shape::Value),
];

/// A term of a selection of nodes, as messages show it.
const TERM: Members = &[
    (
        "matchExpressions",
        "MatchExpressions",
        Shape::List(REQUIREMENT),
    ),
    ("matchFields", "MatchFields", Shape::List(REQUIREMENT)),
];

/// While a Pod is gated its selection of nodes may be narrowed.
fn check_node_affinity(spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let terms = |spec: &Field<'_>| {
        let nodes = spec.get("affinity").get("nodeAffinity");
        let required = nodes.get("requiredDuringSchedulingIgnoredDuringExecution");
        required.get("nodeSelectorTerms").list().to_vec()
    };
    let (now, was) = (terms(spec), terms(old));
    let nodes = spec.get("affinity").get("nodeAffinity");
    let required = nodes.get("requiredDuringSchedulingIgnoredDuringExecution");
    let at = required.get("nodeSelectorTerms");
    // Terms are alternatives: one more would widen the selection, and so would one less requirement.
    if !was.is_empty() && was.len() != now.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        causes.invalid_struct(&at, &structs::shown_list(at.value(), TERM), detail);
        return;
    }
    for (term, was) in at.items().zip(&was) {
        if !only_adds(term.value(), was) {
            let detail = "only additions are allowed (no mutations or deletions)";
            causes.invalid_struct(&term, &structs::shown(term.value(), TERM), detail);
        }
    }
}

fn only_adds(now: &Value, was: &Value) -> bool {
    let list = |term: &Value, member: &str| -> Vec<Value> {
        term[member].as_array().cloned().unwrap_or_default()
    };
    let members = ["matchExpressions", "matchFields"];
    // An empty term selects nothing, so adding to it would widen the selection.
    if members.iter().all(|member| list(was, member).is_empty()) {
        return members.iter().all(|member| list(now, member).is_empty());
    }
    members
        .iter()
        .all(|member| list(now, member).starts_with(&list(was, member)))
}

/// Ephemeral containers come, and neither go nor change.
pub(super) fn check_ephemeral(context: &Context<'_>, causes: &mut Causes) {
    let old_annotations = context.old("metadata").map(|old| old.get("annotations"));
    if old_annotations.is_some_and(|old| annotations::is_mirror(&old)) {
        let detail = "static pods do not support ephemeral containers";
        causes.forbidden(&context.get(""), detail);
        return;
    }
    whole::check(context, causes);
    check_annotations(context, causes);
    let at = context.get("spec").get("ephemeralContainers");
    let old = context
        .old("spec")
        .map(|old| old.get("ephemeralContainers"));
    for was in old.iter().flat_map(Field::items) {
        let name = was.text_of("name");
        // The last container of a name counts.
        let now = at
            .items()
            .filter(|each| each.text_of("name") == name)
            .last();
        let what = match now {
            None => "removed\n".to_owned(),
            Some(now) if !are_equal(now.value(), was.value()) => {
                let difference = dump::diff("EphemeralContainer", was.value(), now.value());
                format!("changed\n{difference}")
            }
            Some(_) => continue,
        };
        let detail = format!("existing ephemeral containers {name:?} may not be {what}");
        causes.forbidden(&at, &detail);
    }
}
