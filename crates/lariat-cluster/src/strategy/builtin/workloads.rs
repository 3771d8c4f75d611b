//! What runs Pods.

use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use lariat_apimachinery::validation::are_equal;
use serde_json::{Value, json};

use super::parts::at;

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
    // A Job without labels has those of its Pods, which in Go are one map.
    let is_shared = own.unwrap_or_default() == *template;
    if !template.is_object() {
        *template = json!({});
    }
    for (label, value) in labels {
        if template.get(label).is_none() {
            template[label] = value.clone().into();
        }
    }
    let all = template.clone();
    if !spec["selector"]["matchLabels"].is_object() {
        spec["selector"] = json!({"matchLabels": {}});
    }
    let selector = &mut spec["selector"]["matchLabels"];
    if selector.get(controller).is_none() {
        selector[controller] = uid.into();
    }
    if is_shared {
        metadata_mut(object).insert("labels".into(), all);
    }
}
