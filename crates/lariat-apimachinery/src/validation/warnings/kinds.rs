//! The warnings of each kind.

use super::collected::Warnings;
use super::{addresses, certificates, finalizers, labels, pods, services, storage};
use crate::kinds::Resource;
use crate::object::{Object, metadata_text};
use crate::validation::field::Field;
use crate::validation::formats;

const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

/// The suffix of names that are reserved for static manifests.
const STATIC: &str = ".static.k8s.io";

/// The completions and parallelism above which failed indexes may not fit.
const COMPLETIONS: i64 = 100_000;
const PARALLELISM: i64 = 10_000;

const JOB_DELETION: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background \
    to remove them or set propagationPolicy=Orphan to suppress this warning";

/// Returns the warnings about a valid object; `old` is the one that it replaces.
#[must_use]
pub fn warnings(resource: &Resource, object: &Object, old: Option<&Object>) -> Vec<String> {
    let mut warnings = Warnings::default();
    if resource.rules.custom {
        finalizers::check(object, old, &mut warnings);
        return warnings.into_list();
    }
    let spec = Field::of(object, "spec");
    let is_new = old.is_none();
    let all = &mut warnings;
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") if is_new => {
            check_name(object, "this is used in the Pod's hostname", all);
            pods::pod(object, all);
        }
        ("", "PodTemplate") if is_changed(object, old) => {
            pods::template(&Field::of(object, "template"), all);
        }
        ("", "ReplicationController") => {
            // Of a change, kube-apiserver takes the old template for the new one.
            let template = Field::of(old.unwrap_or(object), "spec").get("template");
            workload(object, old, &template, all);
        }
        ("apps", "Deployment" | "ReplicaSet") => {
            workload(object, old, &spec.get("template"), all);
        }
        ("batch", "Job") => job(object, old, &spec, all),
        ("batch", "CronJob") => job(object, old, &spec.get("jobTemplate").get("spec"), all),
        ("apps", "DaemonSet") if is_changed(object, old) => {
            pods::template(&spec.get("template"), all);
        }
        ("apps", "StatefulSet") => stateful_set(object, old, all),
        ("", "Service") => services::service(object, all),
        ("", "Endpoints") => services::endpoints(object, all),
        ("discovery.k8s.io", "EndpointSlice") => services::slice(object, is_new, all),
        ("networking.k8s.io", "NetworkPolicy") => services::network_policy(object, all),
        ("networking.k8s.io", "Ingress") if is_new => services::ingress(object, all),
        ("", "Node") => node(&spec, all),
        ("", "Secret") => certificates::check(object, all),
        ("", "ServiceAccount") => service_account(object, old, all),
        ("", "ResourceQuota") if is_new => storage::quota(object, all),
        ("", "PersistentVolume") => storage::volume(object, all),
        ("", "PersistentVolumeClaim") => storage::claim(object, all),
        ("storage.k8s.io", "StorageClass") => storage::storage_class(object, all),
        ("storage.k8s.io", "CSIStorageCapacity") => storage::capacity(object, all),
        ("storage.k8s.io", "CSIDriver") => storage::driver(object, old, all),
        ("node.k8s.io", "RuntimeClass") => runtime_class(object, all),
        ("resource.k8s.io", "ResourceSlice") => device_slice(&spec, all),
        ("admissionregistration.k8s.io", _) if metadata_text(object, "name").ends_with(STATIC) => {
            all.add(format!(
                "metadata.name: names ending with {STATIC:?} are reserved for static manifest-based configurations and \
                 cannot be managed via the API"
            ));
        }
        _ => {}
    }
    warnings.into_list()
}

fn device_slice(spec: &Field<'_>, warnings: &mut Warnings) {
    let driver = spec.text_of("driver");
    if driver != driver.to_lowercase() {
        warnings.add(format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters"
        ));
    }
}

/// Returns the warning for a deletion without a propagation policy.
#[must_use]
pub fn deletion_warning(resource: &Resource) -> Option<&'static str> {
    let is_job = (resource.group.as_str(), resource.plural.as_str()) == ("batch", "jobs");
    is_job.then_some(JOB_DELETION)
}

/// Returns whether an object is created, or its generation rises.
fn is_changed(object: &Object, old: Option<&Object>) -> bool {
    let generation = |object| Field::of(object, "metadata").int_of("generation");
    old.is_none_or(|old| generation(old) != generation(object))
}

/// Warns of a name that is no DNS label.
fn check_name(object: &Object, used: &str, warnings: &mut Warnings) {
    let name = metadata_text(object, "name");
    let wrong = formats::dns_label(name);
    if !wrong.is_empty() && !name.is_empty() {
        let wrong = wrong.join(" ");
        warnings.add(format!(
            "metadata.name: {used}, which can result in surprising behavior; a DNS label is recommended: [{wrong}]"
        ));
    }
}

fn workload(object: &Object, old: Option<&Object>, template: &Field<'_>, warnings: &mut Warnings) {
    if old.is_none() {
        check_name(object, "this is used in Pod names and hostnames", warnings);
    }
    if is_changed(object, old) {
        pods::template(template, warnings);
    }
}

fn job(object: &Object, old: Option<&Object>, spec: &Field<'_>, warnings: &mut Warnings) {
    if old.is_none() {
        check_name(object, "this is used in Pod names and hostnames", warnings);
    }
    if !is_changed(object, old) {
        return;
    }
    let above = |member, most| spec.int_of(member).is_some_and(|count| count > most);
    if spec.text_of("completionMode") == "Indexed"
        && above("completions", COMPLETIONS)
        && above("parallelism", PARALLELISM)
    {
        let what = "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
            Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
        warnings.add_at(spec, what);
    }
    pods::template(&spec.get("template"), warnings);
}

fn stateful_set(object: &Object, old: Option<&Object>, warnings: &mut Warnings) {
    let spec = Field::of(object, "spec");
    if is_changed(object, old) {
        pods::template(&spec.get("template"), warnings);
    }
    for claim in spec.get("volumeClaimTemplates").items() {
        // The paths are those of the Go code.
        let at = match old {
            None => claim.with(claim.member("spec")),
            Some(_) => claim.get("Spec").with(claim.member("spec")),
        };
        storage::claim_spec(&at, warnings);
    }
    let limit = spec.get("revisionHistoryLimit");
    if limit.int().is_some_and(|limit| limit < 0) {
        let what = "a negative value retains all historical revisions; a value >= 0 is recommended";
        warnings.add_at(&limit, what);
    }
}

fn node(spec: &Field<'_>, warnings: &mut Warnings) {
    let source = spec.get("configSource");
    if source.is_set() {
        warnings.add_at(&source, "the feature is removed");
    }
    let id = spec.get("externalID");
    if !id.is_void() {
        let what = "this field is deprecated, and is unused by Kubernetes";
        warnings.add_at(&id, what);
    }
    for range in spec.get("podCIDRs").items() {
        addresses::check_cidr(&range, warnings);
    }
}

fn service_account(object: &Object, old: Option<&Object>, warnings: &mut Warnings) {
    let annotations = |object| Field::of(object, "metadata").get("annotations");
    let had = old.is_some_and(|old| annotations(old).has(MOUNTABLE));
    let annotations = annotations(object);
    if annotations.has(MOUNTABLE) && !had {
        let what =
            "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        warnings.add_at(&annotations.key(MOUNTABLE), what);
    }
}

fn runtime_class(object: &Object, warnings: &mut Warnings) {
    let selector = Field::of(object, "scheduling").get("nodeSelector");
    for (name, _) in selector.entries() {
        if let Some(text) = labels::deprecated(name) {
            warnings.add_at(&selector, text);
        }
    }
}
