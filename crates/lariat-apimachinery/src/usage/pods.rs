//! What a Pod requests, and what it is limited to.
//!
//! Source: `PodRequests` and `PodLimits` in `k8s.io/component-helpers/resource`.

use serde_json::Value;

use super::amounts::Amounts;

/// The resources that a Pod may have as a whole.
const OF_POD: [&str; 2] = ["cpu", "memory"];

/// Returns the containers of a list of a Pod.
pub(super) fn containers<'a>(spec: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    spec[list].as_array().into_iter().flatten()
}

/// Sums up the `requests` or the `limits` of a Pod.
pub(super) fn total(spec: &Value, part: &str) -> Amounts {
    let of = |container: &Value| Amounts::read(&container["resources"][part]);
    let mut total = Amounts::default();
    for container in containers(spec, "containers") {
        total.add(&of(container));
    }
    // Init containers run one after the other, beside those that keep running.
    let (mut running, mut most) = (Amounts::default(), Amounts::default());
    for container in containers(spec, "initContainers") {
        let own = of(container);
        let mut needed = own.clone();
        if container["restartPolicy"] == "Always" {
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
        if OF_POD.contains(&name) {
            // Resources of the Pod as a whole replace the sum of its containers.
            total.set(name, amount);
        }
    }
    // The overhead of the runtime comes on top, whatever else was set.
    total.add(&Amounts::read(if part == "requests" {
        &spec["overhead"]
    } else {
        &Value::Null
    }));
    total
}

/// Returns whether nothing of a Pod requests or limits anything.
pub(super) fn is_best_effort(spec: &Value) -> bool {
    let is_void = |resources: &Value| {
        let part = |part: &str| Amounts::read(&resources[part]);
        let mut both = part("requests");
        both.add(&part("limits"));
        both.only(|name| OF_POD.contains(&name)).is_empty()
    };
    // Only cpu and memory decide the quality of service; a Pod that requests a device only is best effort too.
    is_void(&spec["resources"])
        && containers(spec, "containers")
            .chain(containers(spec, "initContainers"))
            .all(|container| is_void(&container["resources"]))
}
