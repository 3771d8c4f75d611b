//! ResourceQuotas.
//!
//! Source: `k8s.io/kubernetes/pkg/quota/v1/evaluator/core`.

use std::collections::{BTreeMap, BTreeSet};

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

/// What every container must have if a quota limits it.
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
#[derive(Debug, Clone)]
pub struct Quota {
    /// Its name.
    pub name: String,
    /// The limits.
    pub hard: Amounts,
    scopes: Vec<Scope>,
}

/// What limits a quota to some Pods.
#[derive(Debug, Clone)]
struct Scope {
    name: String,
    operator: String,
    values: Vec<String>,
}

/// The reason of a refusal: the text after the name of the object.
pub type Excess = String;

/// Returns the resources that an object uses, its count included.
#[must_use]
pub fn usage(resource: &Resource, object: &Object) -> Amounts {
    let mut used = Amounts::default();
    // Counts what is stored, so a finished Pod is in it, unlike in `pods`.
    used.one(&format!("count/{}", resource.qualified()));
    if !resource.group.is_empty() {
        return used;
    }
    let spec = object.get("spec").unwrap_or(&Value::Null);
    match resource.plural.as_str() {
        "pods" => of_pod(object, spec, &mut used),
        "services" => of_service(spec, &mut used),
        "persistentvolumeclaims" => of_claim(object, spec, &mut used),
        plural if BARE.contains(&plural) => used.one(plural),
        _ => {}
    }
    used
}

fn of_pod(object: &Object, spec: &Value, used: &mut Amounts) {
    let status = object.get("status").unwrap_or(&Value::Null);
    if matches!(status["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return;
    }
    let (requests, limits) = (pods::total(spec, "requests"), pods::total(spec, "limits"));
    used.add(&of_resources(&requests, &limits));
    used.one("pods");
}

/// Names requests and limits as quotas do.
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
        Some(format!("{class}.storageclass.storage.k8s.io/{name}"))
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
    /// Reads a quota; parts of a wrong type count as absent.
    #[must_use]
    pub fn read(quota: &Object) -> Self {
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
        }
    }

    /// Returns whether objects of a resource may use something that the quota limits.
    #[must_use]
    pub fn concerns(&self, resource: &Resource) -> bool {
        let is_core = resource.group.is_empty();
        let is_large = matches!(resource.plural.as_str(), "pods" | "persistentvolumeclaims");
        let probe = usage(resource, &Object::new());
        // What Pods and claims use depends on their content, so an empty object cannot tell it for them.
        is_core && is_large || probe.iter().any(|(name, _)| self.hard.has(name))
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
        usage(resource, object).only(|name| self.hard.has(name))
    }

    /// Checks that an object stays within the quota.
    ///
    /// `old` is the state that it replaces. `used` returns the usage of all objects, `old` included; it is called only
    /// if the object uses more than `old`.
    ///
    /// # Errors
    ///
    /// The quota would be exceeded, or a Pod lacks a request or limit that the quota requires.
    pub fn check(
        &self,
        resource: &Resource,
        object: &Object,
        old: Option<&Object>,
        used: impl FnOnce() -> Amounts,
    ) -> Result<(), Excess> {
        if !self.covers(resource, object) {
            return Ok(());
        }
        // An update of a Pod is not checked: its containers were accepted once.
        if old.is_none() {
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

    /// Checks that each container of a Pod has what the quota limits of cpu and memory.
    fn check_required(&self, resource: &Resource, object: &Object) -> Result<(), Excess> {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let is_pod = resource.group.is_empty() && resource.plural == "pods";
        if !is_pod || spec["resources"].is_object() {
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
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let is_pod = resource.group.is_empty() && resource.plural == "pods";
        // A quota with scopes is about Pods, since no other kind has these.
        let fits = |scope: &Scope| is_pod && scope.fits(spec);
        self.scopes.iter().all(fits)
            && usage(resource, object)
                .iter()
                .any(|(name, _)| self.hard.has(name))
    }
}

impl Scope {
    fn fits(&self, spec: &Value) -> bool {
        let is_terminating = spec["activeDeadlineSeconds"]
            .as_i64()
            .is_some_and(|s| s >= 0);
        match self.name.as_str() {
            "Terminating" => is_terminating,
            "NotTerminating" => !is_terminating,
            "BestEffort" => pods::is_best_effort(spec),
            "NotBestEffort" => !pods::is_best_effort(spec),
            "PriorityClass" => {
                let class = spec["priorityClassName"].as_str().unwrap_or_default();
                let is_listed = self.values.iter().any(|value| value == class);
                match self.operator.as_str() {
                    "In" => is_listed,
                    "NotIn" => !is_listed,
                    "DoesNotExist" => class.is_empty(),
                    _ => !class.is_empty(),
                }
            }
            "CrossNamespacePodAffinity" => reaches_other_namespaces(&spec["affinity"]),
            _ => false,
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
