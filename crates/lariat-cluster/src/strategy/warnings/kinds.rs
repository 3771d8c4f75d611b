//! Which kind has which warnings.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::names::{self, NameRule};
use lariat_apimachinery::object::{Object, metadata_text};
use serde_json::Value;

use super::pods;

const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const JOB_NAME: &str = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; \
    a DNS label is recommended";
const JOB_DELETION: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background \
    to remove them or set propagationPolicy=Orphan to suppress this warning";

/// Returns what is doubtful about an object; `old` is what it replaces.
pub(crate) fn warnings(resource: &Resource, object: &Object, old: Option<&Object>) -> Vec<String> {
    if resource.rules.custom {
        return Vec::new();
    }
    let path = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "services") => return service(object),
        ("", "pods") => "",
        ("storage.k8s.io", "csidrivers") => return driver(object),
        ("discovery.k8s.io", "endpointslices") if old.is_none() => return slice(object),
        ("", "podtemplates") => "template.",
        ("", "replicationcontrollers")
        | ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => "spec.template.",
        ("batch", "cronjobs") => "spec.jobTemplate.spec.template.",
        _ => return Vec::new(),
    };
    let generation = |object: &Object| {
        object
            .get("metadata")
            .map(|each| each["generation"].clone())
    };
    // Templates are looked at again when they may have changed.
    if !path.is_empty() && old.is_some_and(|old| generation(old) == generation(object)) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if resource.plural == "jobs" && old.is_none() {
        let name = metadata_text(object, "name");
        if let Some(rule) = names::check(name, NameRule::Label)
            .err()
            .filter(|_| !name.is_empty())
        {
            warnings.push(format!("{JOB_NAME}: [{rule}]"));
        }
    }
    let path = format!("{path}spec");
    let mut members = path.split('.');
    let first = members.next().and_then(|member| object.get(member));
    if let Some(spec) = members.fold(first, |value, member| value?.get(member)) {
        warnings.extend(pods::warnings(spec, &path));
    }
    warnings
}

/// Returns the warning for a deletion that does not say what becomes of dependents.
pub(crate) fn deletion_warning(resource: &Resource) -> Option<&'static str> {
    let is_job = (resource.group.as_str(), resource.plural.as_str()) == ("batch", "jobs");
    is_job.then_some(JOB_DELETION)
}

fn service(object: &Object) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |is_so: bool, text: &str| {
        if is_so {
            warnings.push(text.to_owned());
        }
    };
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let text = |member: &str| spec[member].as_str().unwrap_or_default();
    let kind = Some(text("type"))
        .filter(|kind| !kind.is_empty())
        .unwrap_or("ClusterIP");
    let (headless, external) = (
        kind == "ClusterIP" && text("clusterIP") == "None",
        kind == "ExternalName",
    );
    let addresses = spec["externalIPs"]
        .as_array()
        .is_some_and(|list| !list.is_empty());
    let annotations = object
        .get("metadata")
        .map(|metadata| &metadata["annotations"]);
    warn(
        annotations.is_some_and(|all| !all[HINTS].is_null()),
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
         service.kubernetes.io/topology-mode instead",
    );
    warn(
        headless && !text("loadBalancerIP").is_empty(),
        "spec.loadBalancerIP is ignored for headless services",
    );
    warn(
        headless && addresses,
        "spec.externalIPs is ignored for headless services",
    );
    warn(
        headless && !matches!(text("sessionAffinity"), "" | "None"),
        "spec.SessionAffinity is ignored for headless services",
    );
    warn(
        addresses && !headless && !external,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    warn(
        addresses && external,
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    warn(
        !external && !text("externalName").is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warn(
        text("trafficDistribution") == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    warnings
}

fn driver(object: &Object) -> Vec<String> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let has_requests = spec["tokenRequests"]
        .as_array()
        .is_some_and(|list| !list.is_empty());
    let is_unset = spec["serviceAccountTokenInSecrets"].is_null();
    let text = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
        possible logging of tokens in volume attributes";
    (has_requests && is_unset)
        .then(|| text.to_owned())
        .into_iter()
        .collect()
}

fn slice(object: &Object) -> Vec<String> {
    let kind = object.get("addressType").and_then(Value::as_str);
    let text = "spec.addressType: FQDN endpoints are deprecated";
    kind.filter(|kind| *kind == "FQDN")
        .map(|_| text.to_owned())
        .into_iter()
        .collect()
}
