//! What runs Pods.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use lariat_core::{LabelSelector, Labels};
use serde_json::{Value, json};

use super::parts::{at, is_void, not_negative};
use super::pods;
use crate::strategy::selector::selector_text;

/// Checks Deployments, ReplicaSets, StatefulSets and DaemonSets.
pub(super) fn validate(plural: &str, object: &Object) -> Vec<StatusCause> {
    if !matches!(
        plural,
        "deployments" | "replicasets" | "statefulsets" | "daemonsets"
    ) {
        return Vec::new();
    }
    let mut causes: Vec<StatusCause> = not_negative(object, &["spec", "replicas"])
        .into_iter()
        .collect();
    let selector = at(object, &["spec", "selector"]);
    if is_void(selector) {
        causes.push(StatusCause::required("spec.selector", ""));
    } else if let Some(mismatch) = mismatch(object) {
        causes.push(mismatch);
    }
    causes.extend(not_negative(object, &["spec", "revisionHistoryLimit"]));
    causes.extend(strategy(plural, object));
    causes.extend(template(object, &["spec", "template"], &["Always"]));
    causes
}

/// A template whose Pods its own selector would not find.
fn mismatch(object: &Object) -> Option<StatusCause> {
    let text = selector_text(at(object, &["spec", "selector"])?)?;
    let selector: LabelSelector = text.parse().ok()?;
    let labels = at(object, &["spec", "template", "metadata", "labels"]);
    let members = labels.and_then(Value::as_object).into_iter().flatten();
    let texts: Labels = members
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    let message = "`selector` does not match template `labels`";
    let value = labels.cloned().unwrap_or_else(|| json!({}));
    let field = "spec.template.metadata.labels";
    (!selector.matches(&texts)).then(|| StatusCause::invalid(field, &value, message))
}

fn strategy(plural: &str, object: &Object) -> Option<StatusCause> {
    let path = ["spec", "strategy"];
    let strategy = at(object, &path).filter(|_| plural == "deployments")?;
    let kind = strategy["type"].as_str().unwrap_or_default();
    match kind {
        "Recreate" if strategy.get("rollingUpdate").is_some() => {
            let message = "may not be specified when strategy `type` is 'Recreate'";
            Some(StatusCause::forbidden(
                "spec.strategy.rollingUpdate",
                message,
            ))
        }
        "Recreate" | "RollingUpdate" => None,
        _ => {
            let supported = r#""Recreate", "RollingUpdate""#;
            Some(StatusCause::unsupported(
                "spec.strategy.type",
                kind,
                supported,
            ))
        }
    }
}

/// Checks a template and how its Pods may restart.
fn template(object: &Object, path: &[&str], policies: &[&str]) -> Vec<StatusCause> {
    let text = [path, &["spec"]].concat();
    let Some(Value::Object(spec)) = at(object, &text) else {
        return vec![StatusCause::required(
            &format!("{}.containers", text.join(".")),
            "",
        )];
    };
    let mut causes = pods::validate_spec(spec, &text.join("."));
    let policy = spec
        .get("restartPolicy")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !policies.contains(&policy) {
        let supported: Vec<String> = policies
            .iter()
            .map(|policy| format!("{policy:?}"))
            .collect();
        let field = format!("{}.restartPolicy", text.join("."));
        causes.push(StatusCause::unsupported(
            &field,
            policy,
            &supported.join(", "),
        ));
    }
    causes
}

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
        None => count(new).unwrap_or(0).max(1),
        Some(old) => {
            let template = |object: &Object| at(object, &["spec", "template"]).cloned();
            let changed = template(old) != template(new);
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

const JOB_POLICIES: [&str; 2] = ["OnFailure", "Never"];

pub(super) fn validate_job(object: &Object) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    for number in [
        "parallelism",
        "completions",
        "backoffLimit",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
    ] {
        causes.extend(not_negative(object, &["spec", number]));
    }
    causes.extend(template(object, &["spec", "template"], &JOB_POLICIES));
    causes
}

pub(super) fn validate_cron_job(object: &Object) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    if is_void(at(object, &["spec", "schedule"])) {
        causes.push(StatusCause::required("spec.schedule", ""));
    }
    let policy = at(object, &["spec", "concurrencyPolicy"])
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !matches!(policy, "Allow" | "Forbid" | "Replace") {
        let supported = r#""Allow", "Forbid", "Replace""#;
        causes.push(StatusCause::unsupported(
            "spec.concurrencyPolicy",
            policy,
            supported,
        ));
    }
    for number in [
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    ] {
        causes.extend(not_negative(object, &["spec", number]));
    }
    causes.extend(template(
        object,
        &["spec", "jobTemplate", "spec", "template"],
        &JOB_POLICIES,
    ));
    causes
}
