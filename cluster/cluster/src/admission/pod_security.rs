//! Pod ServingTls: what the labels of a namespace forbid in its Pods.
//!
//! Source: `plugin/pkg/admission/security/podsecurity` in `k8s.io/kubernetes`, and
//! `k8s.io/pod-security-admission/admission`.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use lariat_apimachinery::admission::pod_security::{
    self, Level, LevelVersion, PREFIX, Pod, Policy, Violations,
};
use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_core::{Labels, ObjectKey};
use serde_json::Value;

use super::request::Request;
use crate::server::Server;
use crate::status::{ApiError, Warnings};
use crate::store::{Range, Stored};
use crate::strategy::Part;

/// The number of Pods of a namespace that are checked when its labels change.
const MOST_PODS: usize = 3000;

/// Checks a new object against the policy of its namespace, or its labels if it is a namespace.
///
/// # Errors
///
/// It is a Pod that is not allowed, or a namespace with labels that mean nothing.
pub(crate) fn check_new_pods(
    resource: &Resource,
    namespace: Option<&Stored>,
    object: &Object,
    request: Option<&Request<'_>>,
) -> Result<(), ApiError> {
    if is_namespace(resource) {
        let (_, causes) = policy_of(object);
        return refuse_labels(resource, object, causes.is_empty(), || causes);
    }
    let Some(namespace) = namespace else {
        return Ok(());
    };
    check(resource, namespace.labels(), object, request)
}

/// Checks a change of an object like a new one.
///
/// A client that tightens the labels of a namespace is warned of the Pods that would not be allowed any more.
///
/// # Errors
///
/// As for [`check_new_pods`].
pub(crate) fn check_changed_pods(
    request: &Request<'_>,
    part: Part,
    old: &Object,
    object: &Object,
) -> Result<(), ApiError> {
    let (server, resource) = (request.server, request.resource);
    if is_namespace(resource) && part == Part::Main {
        return check_labels(server, resource, old, object, request.warnings);
    }
    // Of all other subresources, none changes what a Pod runs.
    let is_pod = resource.group.is_empty() && resource.plural == "pods";
    let counts = part == Part::Main || (is_pod && matches!(part, Part::Ephemeral | Part::Resize));
    if !counts {
        return Ok(());
    }
    let states = (Pod::of(resource, object), Pod::of(resource, old));
    let is_checked = match states {
        // Before the namespace is looked up, since hardly any change of a Pod counts.
        (Some(new), Some(old)) if is_pod => pod_security::is_significant_update(new, old),
        (new, _) => new.is_some(),
    };
    if !is_checked {
        return Ok(());
    }
    let key = ObjectKey::cluster(metadata_text(object, "namespace"));
    let Some(namespace) = server.store.get(server.kinds.namespaces, &key) else {
        return Ok(());
    };
    check(resource, namespace.labels(), object, Some(request))
}

fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "namespaces"
}

/// Checks an object that is or makes Pods against the labels of its namespace.
fn check(
    resource: &Resource,
    labels: &Labels,
    object: &Object,
    request: Option<&Request<'_>>,
) -> Result<(), ApiError> {
    // Nearly all namespaces have no such label, so nothing is read of them.
    if !labels.iter().any(|(key, _)| key.starts_with(PREFIX)) {
        return Ok(());
    }
    let Some(pod) = Pod::of(resource, object) else {
        return Ok(());
    };
    let (policy, _) = Policy::of(|name: &str| labels.get(name));
    if policy.is_privileged() {
        return Ok(());
    }
    // Templates are never refused, since a controller may be what makes a Pod of them allowed.
    if resource.plural == "pods" {
        note(request, "enforce-policy", || policy.enforce.to_string());
        let found = pod_security::evaluate(policy.enforce, pod);
        if !found.is_empty() {
            audit(request, policy.audit, pod);
            let reason = violates("violates", policy.enforce, &found);
            return Err(ApiError::forbidden(
                resource,
                metadata_text(object, "name"),
                &reason,
            ));
        }
    }
    audit(request, policy.audit, pod);
    if let Some(request) = request {
        let found = pod_security::evaluate(policy.warn, pod);
        if !found.is_empty() {
            let text = violates("would violate", policy.warn, &found);
            request.warnings.add(text);
        }
    }
    Ok(())
}

/// Adds the violations of a Pod to the audit log.
fn audit(request: Option<&Request<'_>>, level: LevelVersion, pod: Pod<'_>) {
    if request.is_none() {
        return;
    }
    let found = pod_security::evaluate(level, pod);
    if !found.is_empty() {
        let text = || violates("would violate", level, &found);
        note(request, "audit-violations", text);
    }
}

fn note(request: Option<&Request<'_>>, key: &str, text: impl FnOnce() -> String) {
    if let Some(request) = request {
        request.annotate(format!("{PREFIX}{key}"), text());
    }
}

fn violates(verb: &str, level: LevelVersion, found: &Violations) -> String {
    format!("{verb} PodSecurity \"{level}\": {}", found.details())
}

/// Checks the labels of a namespace, and warns of its Pods if they are stricter than before.
fn check_labels(
    server: &Server,
    resource: &Resource,
    old: &Object,
    object: &Object,
    warnings: &Warnings,
) -> Result<(), ApiError> {
    let (policy, causes) = policy_of(object);
    let (before, known) = policy_of(old);
    // What was wrong before, as on an older server, must not keep anyone from changing something else.
    let texts = |causes: &[_]| -> Vec<String> { causes.iter().map(StatusCause::text).collect() };
    let is_old = texts(&causes) == texts(&known);
    refuse_labels(resource, object, is_old || causes.is_empty(), || causes)?;
    let (new, old) = (policy.enforce, before.enforce);
    let is_relaxed = new.version == old.version && new.level <= old.level;
    if new.level != Level::Privileged && !is_relaxed {
        let namespace = metadata_text(object, "name");
        for text in existing(server, namespace, new) {
            warnings.add(text);
        }
    }
    Ok(())
}

fn refuse_labels(
    resource: &Resource,
    object: &Object,
    are_kept: bool,
    causes: impl FnOnce() -> Vec<StatusCause>,
) -> Result<(), ApiError> {
    if are_kept {
        return Ok(());
    }
    let name = metadata_text(object, "name");
    Err(ApiError::invalid(resource, name, &causes()))
}

fn policy_of(namespace: &Object) -> (Policy, Vec<StatusCause>) {
    let labels = namespace
        .get("metadata")
        .and_then(|metadata| metadata.get("labels"));
    Policy::of(|name: &str| labels?.get(name)?.as_str())
}

/// Returns warnings of the Pods of a namespace that a level forbids; equal ones are counted.
// `EvaluatePodsInNamespace`, but for its time limit.
fn existing(server: &Server, namespace: &str, level: LevelVersion) -> Vec<String> {
    let range = Range {
        namespace: Some(namespace),
        ..Range::default()
    };
    let page = server.store.range(server.store.table("pods"), &range);
    let pods = page.map(|page| page.objects).unwrap_or_default();
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in first_of_owners(&pods).take(MOST_PODS) {
        let object = pod.object();
        let violations = pod_security::evaluate(level, Pod::of_pod(&object));
        if violations.is_empty() {
            continue;
        }
        let name = metadata_text(&object, "name").to_owned();
        // Pods of equal reasons share a warning, which names the first of them in the alphabet.
        let same = found.entry(violations.reasons());
        let (first, count) = same.or_insert_with(|| (name.clone(), 0));
        *first = name.min(std::mem::take(first));
        *count += 1;
    }
    let mut texts = Vec::new();
    if pods.len() > MOST_PODS {
        texts.push(format!(
            "new PodSecurity enforce level only checked against the first {MOST_PODS} of {} existing pods",
            pods.len()
        ));
    }
    if !found.is_empty() {
        texts.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{level}\""
        ));
    }
    let mut of_pods: Vec<String> = found
        .into_iter()
        .map(|(reasons, (name, count))| counted(&reasons, &name, count))
        .collect();
    of_pods.sort();
    texts.extend(of_pods);
    texts
}

/// Returns the warning about one or several Pods.
fn counted(reasons: &str, name: &str, count: usize) -> String {
    match count {
        1 => format!("{name}: {reasons}"),
        2 => format!("{name} (and 1 other pod): {reasons}"),
        _ => format!("{name} (and {} other pods): {reasons}", count - 1),
    }
}

/// Returns Pods with one of each controller first, since its others are like it.
// `prioritizePods`.
fn first_of_owners(pods: &[Arc<Stored>]) -> impl Iterator<Item = &Arc<Stored>> {
    // If all are looked at, their order does not matter.
    let is_sorted = pods.len() > MOST_PODS;
    let mut known = HashSet::new();
    let (first, rest): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| {
        !is_sorted || controller(&pod.object()).is_none_or(|uid| known.insert(uid))
    });
    first.into_iter().chain(rest)
}

fn controller(pod: &Object) -> Option<String> {
    let owners = pod.get("metadata")?.get("ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|each| each["controller"] == true)?;
    owner.get("uid").and_then(Value::as_str).map(str::to_owned)
}
