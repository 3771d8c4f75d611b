//! Strategies of workloads.

use std::num::IntErrorKind;

use lariat_apimachinery::go_text;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use lariat_apimachinery::validation::are_equal;
use serde_json::{Value, json};

use super::parts::at;
use crate::random;

/// The annotation that counts the templates a DaemonSet had.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Counts the templates of a DaemonSet; clients cannot.
///
/// Source: `DaemonSetSpec.TemplateGeneration` in `k8s.io/kubernetes/pkg/apis/apps`.
pub(in crate::strategy) fn count_templates(old: Option<&Object>, new: &mut Object) {
    let count = |object: &Object| {
        let count = at(object, &["metadata", "annotations", TEMPLATE_GENERATION]);
        count.and_then(|count| count.as_str()?.parse::<i64>().ok())
    };
    let generation = match old {
        // As daemonSetStrategy.PrepareForCreate.
        None => count(new).unwrap_or(0).max(1),
        Some(old) => {
            let template = |object: &Object| at(object, &["spec", "template"]).cloned();
            let template = |object: &Object| template(object).unwrap_or_default();
            let changed = !are_equal(&template(old), &template(new));
            count(old).unwrap_or(0) + i64::from(changed)
        }
    };
    let annotations = metadata_mut(new)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    annotations[TEMPLATE_GENERATION] = generation.to_string().into();
}

/// Labels the Pods of a Job, so that it finds them, unless its author does.
///
/// Source: `generateSelector` in `k8s.io/kubernetes/pkg/registry/batch/job`.
pub(super) fn prepare_job(object: &mut Object) {
    if at(object, &["spec", "manualSelector"]) == Some(&Value::Bool(true)) {
        return;
    }
    let uid = metadata_text(object, "uid").to_owned();
    let name = metadata_text(object, "name").to_owned();
    let is_named_here = random::is_generated(&name, metadata_text(object, "generateName"));
    let controller = "batch.kubernetes.io/controller-uid";
    let labels = [
        (controller, &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    let own = at(object, &["metadata", "labels"]).cloned();
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    let template = &mut spec["template"]["metadata"]["labels"];
    // A Job without labels has those of its Pods, which in Go are one map, unless it was copied to be named.
    let is_shared = !is_named_here && own.unwrap_or_default() == *template;
    if !template.is_object() {
        *template = json!({});
    }
    for (label, value) in labels {
        if template.get(label).is_none() {
            template[label] = value.clone().into();
        }
    }
    let all = template.clone();
    // Expressions of a selector that a client sent stay, and may be found wrong.
    for (at, name) in [("", "selector"), ("/selector", "matchLabels")] {
        let within = spec.pointer_mut(at).and_then(Value::as_object_mut);
        if let Some(within) =
            within.filter(|within| !within.get(name).is_some_and(Value::is_object))
        {
            within.insert(name.to_owned(), json!({}));
        }
    }
    let selector = &mut spec["selector"]["matchLabels"];
    if selector.get(controller).is_none() {
        selector[controller] = uid.into();
    }
    if is_shared {
        metadata_mut(object).insert("labels".into(), all);
    }
}

/// The annotation for the revision a Deployment goes back to.
const ROLLBACK: &str = "deprecated.deployment.rollback.to";

/// Reads the annotations that are members of the internal types.
///
/// Source: `k8s.io/kubernetes/pkg/apis/apps/v1/conversion.go`.
///
/// # Errors
///
/// The annotation is no number.
pub(crate) fn read_annotations(resource: &Resource, object: &mut Object) -> Result<(), String> {
    let name = match (resource.group.as_str(), resource.plural.as_str()) {
        _ if resource.rules.custom => return Ok(()),
        ("apps", "deployments") => ROLLBACK,
        ("apps", "daemonsets") => TEMPLATE_GENERATION,
        _ => return Ok(()),
    };
    let Some(text) = at(object, &["metadata", "annotations", name]).and_then(Value::as_str) else {
        return Ok(());
    };
    let annotations = |object: &mut Object, change: &dyn Fn(&mut Object)| {
        let metadata = metadata_mut(object);
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            change(annotations);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    };
    if text.is_empty() && name == ROLLBACK {
        annotations(object, &|annotations| {
            annotations.remove(name);
        });
        return Ok(());
    }
    let number = text.parse::<i64>().map_err(|error| {
        let reason = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        let reason = format!(
            "strconv.ParseInt: parsing {}: {reason}",
            go_text::quoted(text)
        );
        match name {
            ROLLBACK => format!("failed to parse annotation[{name}]={text} as int64: {reason}"),
            _ => reason,
        }
    })?;
    annotations(object, &|annotations| {
        annotations.insert(name.to_owned(), number.to_string().into());
    });
    Ok(())
}

/// Restores the revision to go back to, which is in the spec of the internal type.
///
/// A write of the status therefore does not change it.
pub(in crate::strategy) fn keep_rollback(old: &Object, new: &mut Object) {
    let before = at(old, &["metadata", "annotations", ROLLBACK]).cloned();
    let now = at(new, &["metadata", "annotations", ROLLBACK]);
    if now == before.as_ref() {
        return;
    }
    let metadata = metadata_mut(new);
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Value::Object(annotations) = annotations {
        match before {
            Some(before) => annotations.insert(ROLLBACK.into(), before),
            None => annotations.remove(ROLLBACK),
        };
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}
