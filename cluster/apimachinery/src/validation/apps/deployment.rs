//! Deployments.

use super::replica_set;
use super::{share, template};
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::rule::{self, Rule, Rules};
use crate::validation::structs;

const SPEC: Rules = &[(
    "minReadySeconds revisionHistoryLimit progressDeadlineSeconds",
    Rule::NotNegative,
)];

pub(in crate::validation) fn deployment(context: &Context<'_>, causes: &mut Causes) {
    if context.updates(Part::Status) {
        check_status(context, causes);
        return;
    }
    // `ValidateDeploymentSpec` begins like that of a ReplicaSet.
    let spec = context.get("spec");
    causes.check_not_negative(&spec.get("replicas"));
    replica_set::check_pods(context, causes);
    check_strategy(&spec.get("strategy"), causes);
    rule::check(&spec, SPEC, causes);
    check_rollback(context, causes);
    let deadline = spec.get("progressDeadlineSeconds");
    let ready = spec.int_of("minReadySeconds").unwrap_or(0);
    // Otherwise the Deployment would be given up before a Pod can count as available.
    if deadline.int().is_some_and(|deadline| deadline <= ready) {
        causes.invalid(&deadline, "must be greater than minReadySeconds");
    }
    if let Some(old) = context.old("spec") {
        causes.check_immutable_selector(&spec.get("selector"), &old.get("selector"));
    }
}

/// Checks the revision to go back to, which in Go is a member of the spec.
fn check_rollback(context: &Context<'_>, causes: &mut Causes) {
    const TO: &str = "deprecated.deployment.rollback.to";
    let to = context.get("metadata").get("annotations");
    let revision = to.text_of(TO).parse::<i64>();
    if let Some(revision) = revision.ok().filter(|revision| *revision < 0) {
        // `ValidateDeploymentSpec` names the path so.
        let at = context.get("spec").get("rollback").get("version");
        causes.invalid_as(&at, revision, "must be greater than or equal to 0");
    }
}

fn check_strategy(strategy: &Field<'_>, causes: &mut Causes) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.text_of("type") {
        "Recreate" if rolling.is_set() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            causes.forbidden(&rolling, detail);
        }
        "Recreate" => {}
        "RollingUpdate" if !rolling.is_set() => {
            causes.required(&rolling, "this should be defaulted and never be nil");
        }
        "RollingUpdate" => check_rolling(&rolling, causes),
        _ => {
            let shown = structs::shown(strategy.value(), share::STRATEGY);
            causes.unsupported_text(strategy, &shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

fn check_rolling(rolling: &Field<'_>, causes: &mut Causes) {
    let (missing, more) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    // `ValidateRollingUpdateDeployment`: only the number of missing Pods is limited by their count, so a surge of more
    // than 100 % is fine.
    share::check_number(&missing, causes);
    share::check_number(&more, causes);
    if share::is_zero(&missing) && share::is_zero(&more) {
        causes.invalid(&missing, "may not be 0 when `maxSurge` is 0");
    }
    share::check_at_most_all(&missing, causes);
}

const STATUS: Rules = &[(
    "observedGeneration replicas updatedReplicas readyReplicas availableReplicas \
     unavailableReplicas terminatingReplicas collisionCount",
    Rule::NotNegative,
)];

fn check_status(context: &Context<'_>, causes: &mut Causes) {
    let status = context.get("status");
    rule::check(&status, STATUS, causes);
    let counts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    template::check_counts(&status, &counts, causes);
    template::check_available(&status, "readyReplicas", causes);
    template::check_collisions(context, causes);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::validation::context::Part;
    use crate::validation::testing::{check_created, check_part, check_updated};

    fn deployment(change: impl FnOnce(&mut Value)) -> Value {
        let container = json!({"name": "a", "image": "a", "imagePullPolicy": "Always",
            "terminationMessagePolicy": "File"});
        let pod = json!({"containers": [container], "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30});
        let mut spec = json!({
            "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod},
            "strategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        });
        change(&mut spec);
        json!({"spec": spec})
    }

    #[test]
    fn pods_are_found_and_replaced_by_numbers_that_make_sense() {
        let check = |change: fn(&mut Value), expected: &[&str]| {
            check_created("apps/v1", "Deployment", deployment(change), expected);
        };
        check(|_| {}, &[]);
        check(
            |spec| {
                spec["selector"] = Value::Null;
                spec["minReadySeconds"] = (-1).into();
                spec["progressDeadlineSeconds"] = (-1).into();
            },
            &[
                "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
                "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than minReadySeconds",
                "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match",
            ],
        );
        check(
            |spec| {
                spec["strategy"]["rollingUpdate"] = json!({"maxUnavailable": "x", "maxSurge": 0});
            },
            &[
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"x\": a valid percent",
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"x\": may not be 0 when",
            ],
        );
        check(
            |spec| spec["strategy"] = json!({"type": "Soon"}),
            &[
                "spec.strategy: Unsupported value: {\"Type\":\"Soon\",\"RollingUpdate\":null}: supported \
               values: \"Recreate\", \"RollingUpdate\"",
            ],
        );
    }

    #[test]
    fn selectors_stay_and_counts_fit() {
        check_updated(
            "apps/v1",
            "Deployment",
            &deployment(|_| {}),
            deployment(|spec| {
                spec["selector"]["matchLabels"]["c"] = "d".into();
                spec["template"]["metadata"]["labels"]["c"] = "d".into();
            }),
            &[
                "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\",\"c\":\"d\"}}: field is immutable",
            ],
        );
        check_part(
            ("apps/v1", "Deployment", Part::Status),
            &json!({"status": {"collisionCount": 2}}),
            json!({"status": {"readyReplicas": 1, "availableReplicas": 2, "replicas": 1}}),
            &[
                "status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas",
                "status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas",
                "status.collisionCount: Invalid value: 0: cannot be decremented",
            ],
        );
    }
}
