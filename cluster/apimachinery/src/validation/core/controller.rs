//! ReplicationControllers.

use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::pod;
use crate::validation::rule::{self, Rule, Rules};

pub(in crate::validation) fn replication_controller(context: &Context<'_>, causes: &mut Causes) {
    if context.updates(Part::Status) {
        check_status(&context.get("status"), causes);
        return;
    }
    let spec = context.get("spec");
    rule::check(&spec, &[("minReadySeconds", Rule::NotNegative)], causes);
    // `ValidateReplicationControllerSpec`. Defaults take the selector from the template, so it is only missing if that
    // has no labels.
    causes.check_given(&spec.get("selector"), "");
    if !spec.has("replicas") {
        causes.required(&spec.get("replicas"), "");
    }
    rule::check(&spec, &[("replicas", Rule::NotNegative)], causes);
    check_template(context, &spec, causes);
    check_conversion(context, &spec, causes);
}

/// Checks that members that could not be converted stay as they are.
// `ValidateUpdate` of the strategy.
fn check_conversion(context: &Context<'_>, spec: &Field<'_>, causes: &mut Causes) {
    const PREFIX: &str = "non-convertible.kubernetes.io";
    let (Some(metadata), Some(old)) = (context.old("metadata"), context.old("spec")) else {
        return;
    };
    for (key, value) in metadata.get("annotations").entries() {
        let mut parts = key.split('/');
        let (first, Some(broken), None) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if !first.is_some_and(|first| first.starts_with(PREFIX)) {
            continue;
        }
        if !broken.contains("selector") {
            let detail = "unknown non-convertible field";
            causes.not_found_because(&context.get(broken), value.text(), detail);
        } else if spec.member("selector") != old.member("selector") {
            let detail = "cannot update non-convertible selector";
            causes.invalid(&spec.get("selector"), detail);
        }
    }
}

fn check_template(context: &Context<'_>, spec: &Field<'_>, causes: &mut Causes) {
    let template = spec.get("template");
    if !template.is_set() {
        causes.required(&template, "");
        // The template is a pointer in this oldest API, so it can be missing.
        return;
    }
    check_labels(&spec.get("selector"), &template, causes);
    let old = context.old("spec").map(|old| old.get("template"));
    pod::check_template(&template, old.as_ref(), causes);
    let policy = template.get("spec").get("restartPolicy");
    if policy.text() != "Always" {
        causes.unsupported(&policy, &["Always"]);
    }
    let deadline = template.get("spec").get("activeDeadlineSeconds");
    if deadline.is_set() {
        let detail = "activeDeadlineSeconds in ReplicationController is not Supported";
        causes.forbidden(&deadline, detail);
    }
}

/// Checks that the selector finds the Pods of the template.
fn check_labels(selector: &Field<'_>, template: &Field<'_>, causes: &mut Causes) {
    let labels = template.get("metadata").get("labels");
    if selector
        .entries()
        .any(|(key, value)| labels.member(key) != value.value())
    {
        causes.invalid(&labels, "`selector` does not match template `labels`");
    }
}

const STATUS: Rules = &[(
    "replicas fullyLabeledReplicas readyReplicas availableReplicas observedGeneration",
    Rule::NotNegative,
)];

fn check_status(status: &Field<'_>, causes: &mut Causes) {
    rule::check(status, STATUS, causes);
    let count = |member: &str| status.int_of(member).unwrap_or(0);
    for member in ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"] {
        if count(member) > count("replicas") {
            let detail = "cannot be greater than status.replicas";
            causes.invalid_as(&status.get(member), count(member), detail);
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let detail = "cannot be greater than readyReplicas";
        let available = status.get("availableReplicas");
        causes.invalid_as(&available, count("availableReplicas"), detail);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::validation::Part;
    use crate::validation::testing::check_part;

    #[test]
    fn a_status_counts_no_more_replicas_than_there_are() {
        let status =
            json!({"status": {"replicas": 1, "readyReplicas": 2, "observedGeneration": -1}});
        let old = json!({});
        check_part(
            ("v1", "ReplicationController", Part::Status),
            &old,
            status,
            &[
                "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
                "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
            ],
        );
    }
}
