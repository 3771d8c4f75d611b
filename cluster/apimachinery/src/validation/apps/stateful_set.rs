//! StatefulSets.

use serde_json::{Map, Value, json};

use super::template;
use crate::validation::are_equal;
use crate::validation::causes::Causes;
use crate::validation::claims;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::labels;
use crate::validation::pod;
use crate::validation::rule::{self, Rule, Rules};
use crate::validation::structs::{self, Members, Shape};

const SPEC: Rules = &[("replicas minReadySeconds", Rule::NotNegative)];

const RETENTION: Rules = &[(
    "whenDeleted whenScaled",
    Rule::Supported(&["Retain", "Delete"]),
)];

pub(in crate::validation) fn stateful_set(context: &Context<'_>, causes: &mut Causes) {
    if context.updates(Part::Status) {
        check_status(context, causes);
        return;
    }
    let (spec, old) = (context.get("spec"), context.old("spec"));
    // `ValidateStatefulSetUpdate`: if the old spec would not pass today, the template of the new one is not checked,
    // so that an old object can still be changed.
    let mut before = Causes::default();
    if let Some(old) = &old {
        check_spec(old, Some(old), true, &mut before);
    }
    check_spec(&spec, old.as_ref(), before.count() == 0, causes);
    if let Some(old) = old.filter(|old| !are_equal(&fixed(old).into(), &fixed(&spec).into())) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
            'template', 'updateStrategy', 'revisionHistoryLimit', \
            'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        causes.forbidden(&old, detail);
    }
}

const FREE: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// Returns the immutable members.
fn fixed(spec: &Field<'_>) -> Map<String, Value> {
    let members = spec.value().as_object().into_iter().flatten();
    // An empty list is the same as none, as Go's semantic comparison has it.
    let fixed = members.filter(|(name, value)| {
        !FREE.contains(&name.as_str()) && !value.as_array().is_some_and(Vec::is_empty)
    });
    fixed
        .map(|(name, value)| match name.as_str() {
            "volumeClaimTemplates" => (name.clone(), without_types(value)),
            _ => (name.clone(), value.clone()),
        })
        .collect()
}

/// Returns claims without `apiVersion` and `kind`, as Go's type keeps them.
fn without_types(claims: &Value) -> Value {
    let mut claims = claims.clone();
    for claim in claims.as_array_mut().into_iter().flatten() {
        if let Some(claim) = claim.as_object_mut() {
            claim.retain(|name, _| name != "apiVersion" && name != "kind");
        }
    }
    claims
}

/// Checks the new spec of an update, optionally without the pod template.
fn check_spec(spec: &Field<'_>, old: Option<&Field<'_>>, with_pods: bool, causes: &mut Causes) {
    let policy = spec.get("podManagementPolicy");
    match policy.text() {
        "" => causes.required(&policy, ""),
        "OrderedReady" | "Parallel" => {}
        _ => causes.invalid(&policy, "must be 'OrderedReady' or 'Parallel'"),
    }
    check_strategy(&spec.get("updateStrategy"), causes);
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    if retention.is_set() {
        rule::check(&retention, RETENTION, causes);
    }
    // Neither claims nor the service's name can change, so an update would only meet what was let in before.
    let is_new = old.is_none();
    for claim in spec.get("volumeClaimTemplates").items().filter(|_| is_new) {
        claims::check_spec(&claim.get("spec"), claims::Options::default(), causes);
    }
    rule::check(spec, SPEC, causes);
    let ordinals = spec.get("ordinals");
    if ordinals.is_set() {
        causes.check_not_negative(&ordinals.get("start"));
    }
    let service = spec.get("serviceName");
    if is_new && !service.is_void() {
        causes.check_format(&service, formats::dns_label);
    }
    let selector = spec.get("selector");
    template::check_selector(&selector, "statefulset", causes);
    if !labels::is_selector(&selector) {
        // Go has no detail here.
        causes.invalid_struct(&selector, &structs::selector(selector.value()), "");
    } else {
        check_template(spec, old, with_pods, causes);
    }
    template::check_runs_on(&spec.get("template"), "StatefulSet", causes);
}

fn check_template(spec: &Field<'_>, old: Option<&Field<'_>>, with_pods: bool, causes: &mut Causes) {
    let pods = spec.get("template");
    template::check_found(&spec.get("selector"), &pods, causes);
    if with_pods {
        let run = as_run(spec);
        let was = old.map(|old| old.get("template"));
        pod::check_template(&pods.with(&run), was.as_ref(), causes);
    }
    let metadata = pods.get("metadata");
    // `ValidatePodTemplateSpecForStatefulSet` checks labels and annotations once more, at a path without `metadata`.
    let moved = |name| pods.get(name).with(metadata.member(name));
    labels::check_labels(&moved("labels"), causes);
    labels::check_annotations(&moved("annotations"), causes);
}

/// Returns the template as the controller uses it: it names the Pods, and adds a volume for each claim.
fn as_run(spec: &Field<'_>) -> Value {
    let mut template = spec.member("template").clone();
    let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) else {
        return template;
    };
    // The controller overwrites these two, so what the template says is not checked.
    pod.remove("subdomain");
    pod.remove("hostname");
    let claims = spec.get("volumeClaimTemplates");
    let names: Vec<&str> = claims
        .items()
        .map(|claim| claim.get("metadata").text_of("name"))
        .collect();
    if names.is_empty() {
        return template;
    }
    let mut volumes: Vec<Value> = Vec::new();
    for name in &names {
        let source = json!({"claimName": name});
        let volume = json!({"name": name, "persistentVolumeClaim": source});
        // `volumesToAddForTemplates` is a map, in which claims of the same name are one.
        if !volumes.contains(&volume) {
            volumes.push(volume);
        }
    }
    let own = pod
        .get("volumes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    // A claim replaces a volume of the same name.
    let is_own = |volume: &&Value| !names.contains(&volume["name"].as_str().unwrap_or_default());
    volumes.extend(own.filter(is_own).cloned());
    pod.insert("volumes".into(), volumes.into());
    template
}

const ROLLING: Members = &[
    ("partition", "Partition", Shape::Number),
    ("maxUnavailable", "MaxUnavailable", Shape::Value),
];

const STRATEGY: Members = &[
    ("type", "Type", Shape::Text),
    ("rollingUpdate", "RollingUpdate", Shape::Struct(ROLLING)),
];

fn check_strategy(strategy: &Field<'_>, causes: &mut Causes) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.text_of("type") {
        // The path is that of the strategy and not of its type.
        "" => causes.required(strategy, ""),
        "OnDelete" if rolling.is_set() => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            let shown = structs::shown(rolling.value(), ROLLING);
            causes.invalid_struct(&rolling, &shown, detail);
        }
        "OnDelete" => {}
        // The feature gate of `maxUnavailable` is off, so nothing else is in there.
        "RollingUpdate" => causes.check_not_negative(&rolling.get("partition")),
        _ => {
            let shown = structs::shown(strategy.value(), STRATEGY);
            causes.invalid_struct(strategy, &shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

const STATUS: Rules = &[(
    "replicas readyReplicas currentReplicas updatedReplicas availableReplicas observedGeneration \
     collisionCount",
    Rule::NotNegative,
)];

fn check_status(context: &Context<'_>, causes: &mut Causes) {
    let status = context.get("status");
    rule::check(&status, STATUS, causes);
    let counts = [
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    template::check_counts(&status, &counts, causes);
    // The sentence differs from that of other kinds by the prefix.
    template::check_available(&status, "status.readyReplicas", causes);
    template::check_collisions(context, causes);
}
