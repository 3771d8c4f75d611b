//! ResourceQuotas.
//!
//! Source: `k8s.io/kubernetes/pkg/quota/v1/evaluator/core`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::amounts::Amounts;
use super::pods;
use crate::kinds::Resource;
use crate::object::{Object, metadata_text};

/// Resources of the core group that quotas count by their bare names, too.
// Pods, Services and claims are counted by bare names as well, by functions of their own below.
const BARE: [&str; 4] = [
    "configmaps",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
];

/// The text between a StorageClass and the resource of it that is limited.
const CLASS_SUFFIX: &str = ".storageclass.storage.k8s.io/";

/// The beginning of resources that stand for classes of devices.
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// The resources that every container must have if a quota limits them.
// `validationSet`. Kubernetes keeps this requirement for compatibility and calls it a mistake itself; other resources
// do not have it.
const REQUIRED: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];

/// A ResourceQuota.
///
/// ```
/// use std::time::SystemTime;
///
/// use lariat_apimachinery::kinds::{Kinds, TableId};
/// use lariat_apimachinery::usage::{Amounts, Quota};
/// use serde_json::json;
///
/// let catalog = Kinds::new(|_| TableId(0)).catalog();
/// let pods = catalog.resource("", "v1", "pods").expect("it is built in");
/// let quota = json!({"metadata": {"name": "small"}, "spec": {"hard": {"pods": "3"}}});
/// let quota = Quota::read(quota.as_object().expect("an object"), SystemTime::now());
/// let pod = json!({"spec": {"containers": [{"name": "web"}]}});
/// let pod = pod.as_object().expect("an object");
///
/// let used = |count: &str| Amounts::read(&json!({"pods": count}));
/// assert!(quota.check(pods, pod, None, false, || used("2")).is_ok());
/// let exceeded = quota.check(pods, pod, None, false, || used("3")).unwrap_err();
/// assert_eq!(exceeded, "exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3");
/// ```
#[derive(Debug, Clone)]
pub struct Quota {
    /// Its name.
    pub name: String,
    /// The limits.
    pub hard: Amounts,
    scopes: Vec<Scope>,
    /// The time at which usage is counted.
    now: SystemTime,
}

/// The scope of a quota: the Pods or claims it limits.
#[derive(Debug, Clone)]
struct Scope {
    name: String,
    operator: String,
    values: Vec<String>,
}

/// The reason of a refusal: the text after the name of the object.
pub type Excess = String;

/// Returns the resources that an object uses, its count included.
///
/// A Pod uses nothing else once it has finished, or should be gone by now.
#[must_use]
pub fn usage(resource: &Resource, object: &Object, now: SystemTime) -> Amounts {
    let mut used = Amounts::default();
    // Counts what is stored, so a finished Pod is in it, unlike in `pods`.
    used.one(&format!("count/{}", resource.qualified()));
    if !resource.group.is_empty() {
        return used;
    }
    let spec = object.get("spec").unwrap_or(&Value::Null);
    match resource.plural.as_str() {
        "pods" if !is_past(object, now) => of_pod(object, &mut used),
        "services" => of_service(spec, &mut used),
        "persistentvolumeclaims" => of_claim(object, spec, &mut used),
        plural if BARE.contains(&plural) => used.one(plural),
        _ => {}
    }
    used
}

/// Returns whether objects of a resource may use the named resource of a quota.
// `MatchingResources` of the evaluators.
fn is_used_by(resource: &Resource, name: &str) -> bool {
    match resource.plural.as_str() {
        "pods" if resource.group.is_empty() => is_of_pods(name),
        "persistentvolumeclaims" if resource.group.is_empty() => {
            let (_, name) = name.split_once(CLASS_SUFFIX).unwrap_or(("", name));
            matches!(
                name,
                "count/persistentvolumeclaims" | "persistentvolumeclaims" | "requests.storage"
            )
        }
        // What others use does not depend on their content.
        _ => usage(resource, &Object::new(), SystemTime::UNIX_EPOCH).has(name),
    }
}

fn is_of_pods(name: &str) -> bool {
    let (prefix, rest) = ["requests.", "limits."]
        .into_iter()
        .find_map(|prefix| Some((prefix, name.strip_prefix(prefix)?)))
        .unwrap_or(("", name));
    let is_extended = rest.contains('/') && !rest.contains("kubernetes.io/");
    match rest {
        "cpu" | "memory" | "ephemeral-storage" => true,
        _ if rest.starts_with("hugepages-") => prefix != "limits.",
        _ if is_extended || rest.starts_with(DEVICE_CLASS) => prefix == "requests.",
        _ => matches!(name, "pods" | "count/pods"),
    }
}

/// Returns whether a Pod has finished, or is still there although its time to stop is over.
// `QuotaV1Pod`. The time of deletion includes the grace period; Go adds it once more.
fn is_past(pod: &Object, now: SystemTime) -> bool {
    let member = |name: &str| pod.get(name).unwrap_or(&Value::Null);
    if matches!(
        member("status")["phase"].as_str(),
        Some("Succeeded" | "Failed")
    ) {
        return true;
    }
    let metadata = member("metadata");
    let deletion = metadata["deletionTimestamp"].as_str();
    let deletion: Option<Timestamp> = deletion.and_then(|time| time.parse().ok());
    let grace = metadata["deletionGracePeriodSeconds"].as_u64();
    let end = deletion.zip(grace).and_then(|(deletion, grace)| {
        SystemTime::from(deletion).checked_add(Duration::from_secs(grace))
    });
    end.is_some_and(|end| now > end)
}

fn of_pod(pod: &Object, used: &mut Amounts) {
    let (requests, limits) = (pods::held(pod, "requests"), pods::held(pod, "limits"));
    used.add(&of_resources(&requests, &limits));
    used.one("pods");
}

/// Returns requests and limits under the names that quotas have for them.
// `podComputeUsageHelper`.
fn of_resources(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::default();
    for (name, amount) in requests.iter() {
        if matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-")
        {
            used.set(name, amount);
        }
        used.set(&format!("requests.{name}"), amount);
    }
    for (name, amount) in limits.iter() {
        if matches!(name, "cpu" | "memory" | "ephemeral-storage") {
            used.set(&format!("limits.{name}"), amount);
        }
    }
    used
}

fn of_service(spec: &Value, used: &mut Amounts) {
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let kind = spec["type"].as_str().unwrap_or_default();
    let node_ports = match kind {
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == false => {
            // `portsWithNodePorts`: without allocation only those ports count that the client has chosen itself.
            let given = |port: &&Value| port["nodePort"].as_u64().is_some_and(|port| port != 0);
            ports.iter().filter(given).count()
        }
        "NodePort" | "LoadBalancer" => ports.len(),
        _ => 0,
    };
    used.one("services");
    used.whole("services.nodeports", node_ports);
    used.whole(
        "services.loadbalancers",
        usize::from(kind == "LoadBalancer"),
    );
}

fn of_claim(object: &Object, spec: &Value, used: &mut Amounts) {
    // The older annotation wins over the member.
    let annotation = object.get("metadata").and_then(|metadata| {
        metadata["annotations"]["volume.beta.kubernetes.io/storage-class"].as_str()
    });
    let class = annotation.or_else(|| spec["storageClassName"].as_str());
    let of_class = |name: &str| {
        let class = class.filter(|class| !class.is_empty())?;
        Some(format!("{class}{CLASS_SUFFIX}{name}"))
    };
    let storage = Amounts::read(&spec["resources"]["requests"]).get("storage");
    used.one("persistentvolumeclaims");
    if let Some(name) = of_class("persistentvolumeclaims") {
        used.one(&name);
    }
    if let Some(amount) = storage {
        used.set("requests.storage", amount);
        if let Some(name) = of_class("requests.storage") {
            used.set(&name, amount);
        }
    }
}

impl Quota {
    /// Reads a quota; usage is counted as of `now`.
    ///
    /// Parts of a wrong type count as absent.
    #[must_use]
    pub fn read(quota: &Object, now: SystemTime) -> Self {
        let spec = quota.get("spec").unwrap_or(&Value::Null);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let plain = list(&spec["scopes"]).into_iter().map(|name| Scope {
            name: text(&name),
            // A plain scope is the short form of this operator.
            operator: "Exists".to_owned(),
            values: Vec::new(),
        });
        let selected = list(&spec["scopeSelector"]["matchExpressions"]);
        let selected = selected.into_iter().map(|expression| Scope {
            name: text(&expression["scopeName"]),
            operator: text(&expression["operator"]),
            values: list(&expression["values"]).iter().map(text).collect(),
        });
        Self {
            name: metadata_text(quota, "name").to_owned(),
            hard: Amounts::read(&spec["hard"]),
            scopes: plain.chain(selected).collect(),
            now,
        }
    }

    /// Returns whether objects of a resource may use something that the quota limits.
    #[must_use]
    pub fn concerns(&self, resource: &Resource) -> bool {
        let mut limits = self.hard.iter();
        limits.any(|(name, _)| is_used_by(resource, name))
    }

    /// Returns the status of a quota, given the used amounts.
    #[must_use]
    pub fn status(&self, quota: &Object, used: &Amounts) -> Value {
        let mut all = Amounts::default();
        // Each limited resource is shown, also if nothing uses it.
        self.hard.iter().for_each(|(name, _)| all.whole(name, 0));
        for (name, amount) in used.iter().filter(|(name, _)| self.hard.has(name)) {
            all.set(name, amount);
        }
        let hard = quota.get("spec").map_or(&Value::Null, |spec| &spec["hard"]);
        json!({"hard": hard, "used": all.json()})
    }

    /// Returns the limited resources that an object uses.
    ///
    /// It is nothing for objects outside of the scopes of the quota.
    #[must_use]
    pub fn usage(&self, resource: &Resource, object: &Object) -> Amounts {
        if !self.covers(resource, object) {
            return Amounts::default();
        }
        usage(resource, object, self.now).only(|name| self.hard.has(name))
    }

    /// Checks that an object stays within the quota.
    ///
    /// `old` is the state that it replaces, by a resize or otherwise. `used` returns the usage of all objects, `old`
    /// included; it is called only if the object uses more than `old`.
    ///
    /// # Errors
    ///
    /// The quota would be exceeded, or a Pod lacks a request or limit that the quota requires.
    pub fn check(
        &self,
        resource: &Resource,
        object: &Object,
        old: Option<&Object>,
        is_resize: bool,
        used: impl FnOnce() -> Amounts,
    ) -> Result<(), Excess> {
        if !self.covers(resource, object) {
            return Ok(());
        }
        // `podEvaluator.Handles`: other updates of a Pod are not checked, since its containers were accepted once.
        if is_resize || old.is_none_or(|old| has_deadline(old) != has_deadline(object)) {
            self.check_required(resource, object)?;
        }
        let before = old.map(|old| self.usage(resource, old)).unwrap_or_default();
        let more = self.usage(resource, object).above(&before);
        // Also if a quota is exceeded already: what does not grow is never refused.
        if more.is_empty() {
            return Ok(());
        }
        let used = used().only(|name| self.hard.has(name));
        let mut after = used.clone();
        after.add(&more);
        // Only of what the object adds to; other resources may be over their limit for other reasons.
        let exceeded = after.only(|name| more.has(name)).above(&self.hard);
        if exceeded.is_empty() {
            return Ok(());
        }
        let shown = |amounts: &Amounts| {
            let mut all = Amounts::default();
            // Zero for what is absent, so that all three lists name the same resources.
            exceeded.iter().for_each(|(name, _)| all.whole(name, 0));
            all.add(&amounts.only(|name| exceeded.has(name)));
            all
        };
        Err(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            self.name,
            shown(&more),
            shown(&used),
            shown(&self.hard)
        ))
    }

    /// Checks that each container of a Pod has the cpu and memory amounts that the quota limits.
    fn check_required(&self, resource: &Resource, object: &Object) -> Result<(), Excess> {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let is_pod = resource.group.is_empty() && resource.plural == "pods";
        if !is_pod || pods::has_own_resources(spec) {
            return Ok(());
        }
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let all = pods::containers(spec, "containers");
        for container in all.chain(pods::containers(spec, "initContainers")) {
            let part = |part: &str| Amounts::read(&container["resources"][part]);
            let has = of_resources(&part("requests"), &part("limits"));
            let name = container["name"].as_str().unwrap_or_default();
            for required in REQUIRED {
                if self.hard.has(required) && !has.has(required) {
                    missing.entry(required).or_default().insert(name);
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let parts = missing.iter().map(|(name, containers)| {
            let containers: Vec<&str> = containers.iter().copied().collect();
            format!("{name} for: {}", containers.join(","))
        });
        let parts: Vec<String> = parts.collect();
        Err(format!(
            "failed quota: {}: must specify {}",
            self.name,
            parts.join("; ")
        ))
    }

    /// Returns whether an object is one that the quota is about.
    fn covers(&self, resource: &Resource, object: &Object) -> bool {
        let fits = |scope: &Scope| match resource.plural.as_str() {
            _ if !resource.group.is_empty() => false,
            "pods" => scope.fits_pod(object),
            "persistentvolumeclaims" => scope.fits_claim(object),
            // A quota with scopes is about these two, since no other kind has any.
            _ => false,
        };
        // A Pod that requests none of the cpu a quota limits is covered too, and refused for that.
        self.scopes.iter().all(fits) && self.concerns(resource)
    }
}

/// Returns whether a Pod ends at some time.
// `IsTerminating`.
fn has_deadline(pod: &Object) -> bool {
    let seconds = pod
        .get("spec")
        .and_then(|spec| spec["activeDeadlineSeconds"].as_i64());
    seconds.is_some_and(|seconds| seconds >= 0)
}

impl Scope {
    fn fits_pod(&self, pod: &Object) -> bool {
        let spec = pod.get("spec").unwrap_or(&Value::Null);
        let is_terminating = has_deadline(pod);
        match self.name.as_str() {
            "Terminating" => is_terminating,
            "NotTerminating" => !is_terminating,
            "BestEffort" => pods::is_best_effort(pod),
            "NotBestEffort" => !pods::is_best_effort(pod),
            "PriorityClass" => {
                let class = spec["priorityClassName"].as_str();
                self.selects(class.filter(|class| !class.is_empty()))
            }
            "CrossNamespacePodAffinity" => reaches_other_namespaces(&spec["affinity"]),
            _ => false,
        }
    }

    // `pvcMatchesScopeFunc`: while a claim changes its class, both count.
    fn fits_claim(&self, claim: &Object) -> bool {
        let text = |member: &str, path: &str| claim.get(member)?.pointer(path)?.as_str();
        let classes = [
            text("spec", "/volumeAttributesClassName"),
            text("status", "/currentVolumeAttributesClassName"),
            text(
                "status",
                "/modifyVolumeStatus/targetVolumeAttributesClassName",
            ),
        ];
        let given = classes.into_iter().flatten();
        let given: Vec<&str> = given.filter(|class| !class.is_empty()).collect();
        self.name == "VolumeAttributesClass"
            && if given.is_empty() {
                self.selects(None)
            } else {
                given.into_iter().any(|class| self.selects(Some(class)))
            }
    }

    /// Returns whether the selector fits the name of a class, or that there is none.
    fn selects(&self, class: Option<&str>) -> bool {
        let is_listed = self.values.iter().any(|value| Some(&**value) == class);
        match self.operator.as_str() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            "DoesNotExist" => class.is_none(),
            _ => class.is_some(),
        }
    }
}

/// Returns whether affinities of a Pod name other namespaces.
// `usesCrossNamespacePodAffinity` walks the terms; here any member of these names counts, which no other structure of
// an affinity has.
fn reaches_other_namespaces(affinity: &Value) -> bool {
    match affinity {
        Value::Object(members) => members.iter().any(|(name, value)| match name.as_str() {
            "namespaces" => value.as_array().is_some_and(|names| !names.is_empty()),
            "namespaceSelector" => value.is_object(),
            _ => reaches_other_namespaces(value),
        }),
        Value::Array(items) => items.iter().any(reaches_other_namespaces),
        _ => false,
    }
}
