//! The quality of service that a Pod gets.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::quantity::Quantity;

/// The resources that count.
const COUNTED: [&str; 2] = ["cpu", "memory"];

type Amounts = BTreeMap<&'static str, Quantity>;

/// Returns the class of quality of service of a Pod, from its spec.
///
/// Source: `ComputePodQOS` in `k8s.io/kubernetes/pkg/apis/core/helper/qos`.
///
/// ```
/// use lariat_apimachinery::validation::quality_of_service;
/// use serde_json::json;
///
/// let limits = json!({"cpu": "1", "memory": "1Gi"});
/// let of = |requests| {
///     quality_of_service(&json!({"containers": [{"resources": {"limits": limits, "requests": requests}}]}))
/// };
/// assert_eq!(of(json!({"cpu": "1", "memory": "1073741824"})), "Guaranteed");
/// assert_eq!(of(json!({"cpu": "0", "memory": "1Gi"})), "Burstable");
/// assert_eq!(quality_of_service(&json!({"containers": [{}]})), "BestEffort");
/// ```
#[must_use]
pub fn quality_of_service(spec: &Value) -> &'static str {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut are_limited = true;
    // Resources of the Pod decide alone, even if they are empty.
    if let Some(resources) = spec.get("resources").filter(|each| each.is_object()) {
        add(&mut requests, &resources["requests"]);
        let given = resources["limits"].as_object();
        if given.is_some_and(|limits| !limits.is_empty()) {
            are_limited = add(&mut limits, &resources["limits"]) == COUNTED.len();
        }
    } else {
        let lists = ["containers", "initContainers"].iter();
        let containers = lists.filter_map(|list| spec[*list].as_array()).flatten();
        for container in containers {
            let resources = &container["resources"];
            add(&mut requests, &resources["requests"]);
            are_limited &= add(&mut limits, &resources["limits"]) == COUNTED.len();
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if are_limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds the amounts that count, and returns their number.
fn add(sums: &mut Amounts, amounts: &Value) -> usize {
    let mut count = 0;
    for name in COUNTED {
        let amount = amounts[name].as_str().and_then(Quantity::parse);
        // `processResourceList`: an amount of zero is the same as none.
        if let Some(amount) = amount.filter(|amount| *amount > Quantity::ZERO) {
            let sum = sums.entry(name).or_insert(Quantity::ZERO);
            *sum = sum.plus(amount);
            count += 1;
        }
    }
    count
}
