//! The requests and limits of a Pod.
//!
//! Source: `PodRequests` and `PodLimits` in `k8s.io/component-helpers/resource`.

use serde_json::Value;

use super::amounts::Amounts;
use crate::object::Object;
use crate::quantity::Quantity;

/// Returns whether a resource decides the quality of service of a Pod.
fn is_basic(name: &str) -> bool {
    matches!(name, "cpu" | "memory")
}

/// Returns whether a Pod may have a resource as a whole.
// `IsSupportedPodLevelResource`.
fn is_of_pod(name: &str) -> bool {
    is_basic(name) || name.starts_with("hugepages-")
}

/// Returns whether a Pod has resources as a whole.
// `IsPodLevelResourcesSet`.
pub(super) fn has_own_resources(spec: &Value) -> bool {
    let mut parts = ["requests", "limits"].into_iter();
    parts.any(|part| {
        let own = Amounts::read(&spec["resources"][part]);
        own.iter().any(|(name, _)| is_of_pod(name))
    })
}

/// Returns the containers of a list of a Pod.
pub(super) fn containers<'a>(spec: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    spec[list].as_array().into_iter().flatten()
}

/// Sums up the `requests` or the `limits` of a Pod, the overhead of its runtime included.
pub(super) fn total(spec: &Value, part: &str) -> Amounts {
    with_overhead(spec, part, sum(spec, part, is_of_pod, &sent(part)))
}

/// Sums up the `requests` or `limits` of a Pod, until a kubelet has done its last resize.
// `PodResourcesOptions.UseStatusResources`, which Go applies to containers, and to init containers that keep running.
pub(super) fn held(pod: &Object, part: &str) -> Amounts {
    let member = |name: &str| pod.get(name).unwrap_or(&Value::Null);
    let (spec, status) = (member("spec"), member("status"));
    let lists = ["containerStatuses", "initContainerStatuses"];
    if lists.iter().all(|list| status[list].is_null()) {
        return total(spec, part);
    }
    let is_infeasible = is_infeasible(status);
    let of = |container: &Value| {
        let asked = Amounts::read(&container["resources"][part]);
        let mut reported = lists.iter().flat_map(|list| containers(status, list));
        let reported = reported.find(|each| each["name"] == container["name"]);
        let Some(reported) = reported.filter(|each| each["resources"].is_object()) else {
            return asked;
        };
        let mut most = Amounts::read(&reported["resources"][part]);
        if part == "requests" {
            most.at_least(&Amounts::read(&reported["allocatedResources"]));
        }
        if !is_infeasible {
            most.at_least(&asked);
        }
        most
    };
    with_overhead(spec, part, sum(spec, part, is_of_pod, &of))
}

/// Returns whether a kubelet cannot do the resize.
// `IsPodResizeInfeasible`.
fn is_infeasible(status: &Value) -> bool {
    let mut conditions = containers(status, "conditions");
    let pending = conditions.find(|condition| condition["type"] == "PodResizePending");
    pending.is_some_and(|pending| pending["reason"] == "Infeasible")
}

fn with_overhead(spec: &Value, part: &str, mut total: Amounts) -> Amounts {
    let overhead = Amounts::read(&spec["overhead"]);
    // A Pod without a limit does not get one by its overhead.
    let is_limited = |name: &str| {
        let limit = total.get(name);
        part == "requests" || limit.is_some_and(|limit| limit != Quantity::ZERO)
    };
    let overhead = overhead.only(is_limited);
    total.add(&overhead);
    total
}

/// Sums up the `requests` or the `limits` of a Pod as limit ranges compare them.
// `podRequests` and `podLimits` of the plugin LimitRanger have no overhead, and fewer resources of the whole Pod.
pub(super) fn limited(spec: &Value, part: &str) -> Amounts {
    sum(spec, part, is_basic, &sent(part))
}

/// Returns the requests or limits of a container.
fn sent(part: &str) -> impl Fn(&Value) -> Amounts + '_ {
    move |container| Amounts::read(&container["resources"][part])
}

/// Sums up the requests or limits of containers.
///
/// Some resources of the Pod as a whole replace the sum of its containers.
fn sum(
    spec: &Value,
    part: &str,
    replaces: fn(&str) -> bool,
    of: &dyn Fn(&Value) -> Amounts,
) -> Amounts {
    let mut total = Amounts::default();
    for container in containers(spec, "containers") {
        total.add(&of(container));
    }
    // Init containers run one after the other, beside those that keep running.
    let (mut running, mut most) = (Amounts::default(), Amounts::default());
    for container in containers(spec, "initContainers") {
        let keeps_running = container["restartPolicy"] == "Always";
        let own = if keeps_running {
            of(container)
        } else {
            sent(part)(container)
        };
        let mut needed = own.clone();
        if keeps_running {
            total.add(&own);
            running.add(&own);
            needed = running.clone();
        } else {
            needed.add(&running);
        }
        most.at_least(&needed);
    }
    // The Pod needs the larger of the two phases, for each resource on its own.
    total.at_least(&most);
    for (name, amount) in Amounts::read(&spec["resources"][part]).iter() {
        if replaces(name) {
            total.set(name, amount);
        }
    }
    total
}

/// Returns whether nothing of a Pod requests or limits anything.
// `GetPodQOS`: the class in the status is not computed again.
pub(super) fn is_best_effort(pod: &Object) -> bool {
    let member = |name: &str| pod.get(name).unwrap_or(&Value::Null);
    if let Some(class) = member("status")["qosClass"].as_str()
        && !class.is_empty()
    {
        return class == "BestEffort";
    }
    let spec = member("spec");
    let is_void = |resources: &Value| {
        let mut parts = ["requests", "limits"].into_iter();
        parts.all(|part| {
            let amounts = Amounts::read(&resources[part]);
            // Only cpu and memory count; a Pod that requests a device only is best effort too.
            let mut basic = amounts.iter().filter(|(name, _)| is_basic(name));
            basic.all(|(_, amount)| amount <= Quantity::ZERO)
        })
    };
    // With resources of the Pod as a whole those of its containers say nothing.
    if spec["resources"].is_object() {
        return is_void(&spec["resources"]);
    }
    let mut all = containers(spec, "containers").chain(containers(spec, "initContainers"));
    all.all(|container| is_void(&container["resources"]))
}
