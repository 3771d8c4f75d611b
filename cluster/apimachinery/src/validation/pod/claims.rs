//! Resources: amounts of a node's, and claims.

use std::collections::HashSet;

use super::options::Options;
use super::pod_context::PodContext;
use crate::go_text;
use crate::object::Object;
use crate::quantity::Quantity;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::resources::{self, amount};

/// Checks which claims of resources a Pod has.
pub(super) fn check_claims(claims: &Field<'_>, is_static: bool, causes: &mut Causes) {
    let mut names = HashSet::new();
    for claim in claims.items() {
        // `validatePodResourceClaim`, which has the path of the whole object here.
        if is_static {
            let detail = "static pods do not support resource claims";
            causes.forbidden(&Field::of(&Object::new(), ""), detail);
            continue;
        }
        let name = claim.get("name");
        if causes.check_given(&name, "") {
            if names.insert(name.text()) {
                causes.check_format(&name, formats::dns_label);
            } else {
                causes.duplicate(&name);
            }
        }
        // `validatePodResourceClaims`.
        let given = claim.given(&["resourceClaimName", "resourceClaimTemplateName"]);
        let detail = match given.len() {
            0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            1 => "",
            _ => {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            }
        };
        if !detail.is_empty() {
            let shown = format!(
                "{{\"Name\":{},\"ResourceClaimName\":{},\"ResourceClaimTemplateName\":{}}}",
                go_text::json(&name.text().into()),
                claim.member("resourceClaimName"),
                claim.member("resourceClaimTemplateName")
            );
            causes.invalid_struct(&claim, &shown, detail);
        }
        for member in given {
            causes.check_format(&claim.get(member), formats::dns_subdomain);
        }
    }
}

/// Checks the name of a resource.
type NameCheck = fn(&Field<'_>, &str, &mut Causes);

/// Checks the resource requirements of a container.
pub(super) fn check_requirements(at: &Field<'_>, pod: &PodContext<'_>, causes: &mut Causes) {
    check_amounts(at, resources::check_container_name, pod.options, causes);
    check_claim_names(&at.get("claims"), &pod.claims, causes);
}

/// Checks the overhead of the Pod.
pub(super) fn check_overhead(pod: &PodContext<'_>, causes: &mut Causes) {
    let overhead = pod.spec.get("overhead");
    check_overhead_amounts(&overhead, &overhead, pod.options, causes);
}

/// Checks the overhead of a RuntimeClass.
pub(in crate::validation) fn check_fixed_overhead(overhead: &Field<'_>, causes: &mut Causes) {
    let amounts = overhead.get("podFixed");
    check_overhead_amounts(overhead, &amounts, Options::default(), causes);
}

fn check_overhead_amounts(
    overhead: &Field<'_>,
    amounts: &Field<'_>,
    options: Options,
    causes: &mut Causes,
) {
    // `validateOverhead` checks the amounts as limits of a container, whose paths the causes have.
    let limits = overhead.get("limits").with(amounts.value());
    let mut pages = false;
    for (name, at) in limits.entries() {
        check_amount(&at, name, resources::check_container_name, options, causes);
        pages |= resources::is_huge_page(name);
    }
    if pages && !amounts.has("cpu") && !amounts.has("memory") {
        causes.forbidden(overhead, "HugePages require cpu or memory");
    }
}

fn check_amount(
    at: &Field<'_>,
    name: &str,
    check_name: NameCheck,
    options: Options,
    causes: &mut Causes,
) {
    check_name(at, name, causes);
    resources::check_amount(at, name, causes);
    let amount = amount(at);
    // A page cannot be divided. Pods that were let in before this was checked may stay.
    let whole = options.any_huge_pages || resources::is_whole_pages(name, amount);
    if resources::is_huge_page(name) && !whole {
        let detail = format!("{amount} is not positive integer multiple of {name}");
        causes.invalid_as(at, amount.to_string(), &detail);
    }
}

// `ValidateContainerResourceRequirements`, and the same rules for the Pod as a whole.
fn check_amounts(at: &Field<'_>, check_name: NameCheck, options: Options, causes: &mut Causes) {
    let (limits, requests) = (at.get("limits"), at.get("requests"));
    for (name, limit) in limits.entries() {
        check_amount(&limit, name, check_name, options, causes);
    }
    for (name, request) in requests.entries() {
        check_amount(&request, name, check_name, options, causes);
        let requested = amount(&request);
        let limit = limits.get(name);
        let overcommit = resources::may_overcommit(name);
        if !limit.is_set() {
            if !overcommit {
                // The path is that of all limits, since the missing one has none.
                causes.required(
                    &limits,
                    "Limit must be set for non overcommitable resources",
                );
            }
            continue;
        }
        let limit = amount(&limit);
        // Checked first, so a request above a limit that cannot be overcommitted is "not equal".
        let rule = if requested != limit && !overcommit {
            "equal to"
        } else if requested > limit {
            "less than or equal to"
        } else {
            continue;
        };
        let detail = format!("must be {rule} {name} limit of {limit}");
        causes.invalid_as(&requests, requested.to_string(), &detail);
    }
    let has = |name: &str| limits.has(name) || requests.has(name);
    let mut names = limits.entries().chain(requests.entries());
    let pages = names.any(|(name, _)| resources::is_huge_page(name));
    if pages && !has("cpu") && !has("memory") {
        causes.forbidden(at, "HugePages require cpu or memory");
    }
}

fn check_claim_names(claims: &Field<'_>, of_pod: &[&str], causes: &mut Causes) {
    let mut names: HashSet<String> = HashSet::new();
    for claim in claims.items() {
        let (name, request) = (claim.text_of("name"), claim.text_of("request"));
        if name.is_empty() {
            // The path is that of the claim and not of its name.
            causes.required(&claim, "");
            continue;
        }
        // A claim as a whole includes all its requests, so neither may stand beside the other.
        if names.contains(name) {
            causes.duplicate_as(&claim, name);
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                causes.check_format(&claim.get("request"), formats::dns_label);
                key = format!("{name}/{request}");
            }
            let part = format!("{name}/");
            if names.contains(&key) {
                causes.duplicate_as(&claim, key.as_str());
            } else if request.is_empty() {
                for _ in names.iter().filter(|other| other.starts_with(&part)) {
                    causes.duplicate_as(&claim, name);
                }
            }
            names.insert(key);
        }
        if !of_pod.contains(&name) {
            let mut known = of_pod.to_vec();
            known.sort_unstable();
            known.dedup();
            let known = if known.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", known.join(", "))
            };
            let detail = format!("must be one of the names in pod.spec.resourceClaims{known}");
            causes.not_found_because(&claim, name, &detail);
        }
    }
}

/// Checks the resources of the Pod as a whole.
pub(super) fn check_resources(pod: &PodContext<'_>, causes: &mut Causes) {
    let at = pod.spec.get("resources");
    if !at.is_set() {
        return;
    }
    // `validatePodResources`.
    if pod.spec.get("os").text_of("name") == "windows" {
        causes.forbidden(&at, "may not be set for a windows pod");
        return;
    }
    if at.has("claims") {
        let detail = "claims may not be set for Resources at pod-level";
        causes.forbidden(&at.get("claims"), detail);
    }
    check_amounts(&at, resources::check_pod_name, pod.options, causes);
    check_claim_names(&at.get("claims"), &pod.claims, causes);
    check_sums(pod, &at, causes);
}

/// Checks that containers do not need more than their Pod.
fn check_sums(pod: &PodContext<'_>, at: &Field<'_>, causes: &mut Causes) {
    for (name, request) in at.get("requests").entries() {
        let needed = needed(&pod.spec, "requests", name);
        // What is negative is refused as such, and containers that need nothing are not compared.
        if needed > Quantity::ZERO && needed > amount(&request) {
            let detail = format!(
                "must be greater than or equal to aggregate container requests of {needed}"
            );
            causes.invalid_as(&request, amount(&request).to_string(), &detail);
        }
    }
    for (name, limit) in at.get("limits").entries() {
        let needed = needed(&pod.spec, "limits", name);
        if resources::is_huge_page(name) && needed > amount(&limit) {
            let detail =
                format!("must be greater than or equal to aggregate container limits of {needed}");
            causes.invalid_as(&limit, amount(&limit).to_string(), &detail);
        }
        for container in pod.spec.get("containers").items() {
            let own = container.get("resources").get("limits").get(name);
            if own.is_set() && amount(&own) > amount(&limit) {
                // A path that no object has; Go builds it from the wrong parent.
                let at = at.get("containers").item_of(&container).key(name);
                let detail = format!(
                    "must be less than or equal to pod limits of {}",
                    amount(&limit)
                );
                causes.invalid_as(&at.get("limits"), amount(&own).to_string(), &detail);
            }
        }
    }
}

/// Returns how much of a resource containers need at most at the same time.
fn needed(spec: &Field<'_>, kind: &'static str, name: &str) -> Quantity {
    let of = |container: &Field<'_>| {
        let amounts = container.get("resources").get(kind);
        amount(&amounts.with(amounts.member(name)))
    };
    let containers = spec.get("containers").items();
    let running = containers.fold(Quantity::ZERO, |sum, each| sum.plus(of(&each)));
    let (mut sidecars, mut most) = (Quantity::ZERO, Quantity::ZERO);
    for init in spec.get("initContainers").items() {
        if init.text_of("restartPolicy") == "Always" {
            sidecars = sidecars.plus(of(&init));
            most = most.max(sidecars);
        } else {
            // An init container runs beside the sidecars that were started before it, and alone otherwise.
            most = most.max(sidecars.plus(of(&init)));
        }
    }
    running.plus(sidecars).max(most)
}
