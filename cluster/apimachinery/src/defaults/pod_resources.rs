//! Resources of a Pod as a whole, as far as they follow from its containers.
//!
//! Source: `defaultPodRequests` and `defaultHugePagePodLimits` in `k8s.io/kubernetes/pkg/apis/core/v1`, and
//! `AggregateContainerRequests` in `k8s.io/component-helpers/resource`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::members::{inner, made, set};
use crate::object::Object;
use crate::quantity::Quantity;

type Amounts = BTreeMap<String, Quantity>;

/// Fills in the resources of a Pod that has some.
pub(super) fn fill(spec: &mut Object) {
    let (requests, limits) = (aggregate(spec, "requests"), aggregate(spec, "limits"));
    let Some(resources) = inner(spec, "resources") else {
        return;
    };
    let has = |resources: &Object, member: &str| {
        let amounts = resources.get(member).and_then(Value::as_object);
        amounts.is_some_and(|amounts| !amounts.is_empty())
    };
    // `defaultHugePagePodLimits` comes first: requests below follow from limits. Huge pages cannot be overcommitted,
    // so a request needs an equal limit.
    if has(resources, "limits") || has(resources, "requests") {
        let requested = resources.get("requests").cloned().unwrap_or_default();
        let huge = limits.into_iter().filter(|(name, _)| is_huge(name));
        let huge = huge.filter(|(name, _)| requested.get(name).is_none());
        add(
            resources,
            "limits",
            huge.map(|(name, amount)| written(name, &amount)),
        );
    }
    // `defaultPodRequests` returns here; a Pod that only requests has said all.
    if !has(resources, "limits") {
        return;
    }
    let of_containers = requests
        .into_iter()
        .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"));
    add(
        resources,
        "requests",
        of_containers.map(|(name, amount)| written(name, &amount)),
    );
    // What no container requests is requested as much as it is limited.
    let limits = resources.get("limits").and_then(Value::as_object).cloned();
    let supported = limits
        .into_iter()
        .flatten()
        .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory") || is_huge(name));
    add(resources, "requests", supported);
}

fn is_huge(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn written(name: String, amount: &Quantity) -> (String, Value) {
    (name, amount.to_string().into())
}

fn add(resources: &mut Object, member: &str, amounts: impl Iterator<Item = (String, Value)>) {
    let mut amounts = amounts.peekable();
    if amounts.peek().is_some()
        && let Some(amounts_there) = made(resources, member)
    {
        amounts.for_each(|(name, amount)| set(amounts_there, &name, amount));
    }
}

/// Returns the maximum the containers need at once.
///
/// It is reached while an init container runs, or when all containers run.
fn aggregate(spec: &Object, member: &str) -> Amounts {
    let mut running = Amounts::new();
    for container in containers(spec, "containers") {
        merge(&mut running, amounts(container, member), Quantity::plus);
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in containers(spec, "initContainers") {
        let mut needs = amounts(container, member);
        if container["restartPolicy"] == "Always" {
            merge(&mut running, needs.clone(), Quantity::plus);
            merge(&mut sidecars, needs, Quantity::plus);
            // A sidecar starts beside those before it, and keeps running beside all that follow.
            needs = sidecars.clone();
        } else {
            merge(&mut needs, sidecars.clone(), Quantity::plus);
        }
        merge(&mut starting, needs, Quantity::max);
    }
    merge(&mut running, starting, Quantity::max);
    running
}

fn containers<'a>(spec: &'a Object, list: &str) -> &'a [Value] {
    let containers = spec.get(list).and_then(Value::as_array);
    containers.map_or(&[], Vec::as_slice)
}

fn amounts(container: &Value, member: &str) -> Amounts {
    let amounts = container["resources"][member].as_object();
    let read = |(name, amount): (&String, &Value)| {
        Some((name.clone(), Quantity::parse(amount.as_str()?)?))
    };
    amounts.into_iter().flatten().filter_map(read).collect()
}

fn merge(into: &mut Amounts, amounts: Amounts, both: fn(Quantity, Quantity) -> Quantity) {
    for (name, amount) in amounts {
        into.entry(name)
            .and_modify(|there| *there = both(*there, amount))
            .or_insert(amount);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mut spec: Value, expected: &Value) {
        let spec = spec.as_object_mut().unwrap();
        fill(spec);
        assert_eq!(spec["resources"], *expected);
    }

    #[test]
    fn a_pod_requests_what_its_containers_do_or_else_its_limits() {
        let needs = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        check(
            json!({"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}, "containers": [needs("100m"), needs("1")]}),
            &json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1100m", "memory": "1Gi"}}),
        );
        let mut sidecar = needs("2");
        sidecar["restartPolicy"] = "Always".into();
        check(
            json!({"resources": {"limits": {"cpu": "9"}}, "containers": [needs("1")],
                "initContainers": [sidecar, needs("3")]}),
            &json!({"limits": {"cpu": "9"}, "requests": {"cpu": "5"}}),
        );
        let huge = json!({"resources": {"limits": {"hugepages-2Mi": "4Mi"}}});
        check(
            json!({"resources": {"requests": {"cpu": "1"}}, "containers": [huge]}),
            &json!({"requests": {"cpu": "1", "hugepages-2Mi": "4Mi"}, "limits": {"hugepages-2Mi": "4Mi"}}),
        );
    }
}
