//! The addresses of a Service inside the cluster.

use std::collections::HashSet;
use std::net::IpAddr;

use super::service_kind::is_headless;
use crate::validation::addresses;
use crate::validation::causes::Causes;
use crate::validation::field::Field;

/// Checks addresses and families, here and against each other.
pub(in crate::validation) fn check(spec: &Field<'_>, old: Option<&Field<'_>>, causes: &mut Causes) {
    // `ValidateServiceClusterIPsRelatedFields`; it is a name, and what was set is refused where the type is checked.
    if spec.text_of("type") == "ExternalName" {
        return;
    }
    let (first, all) = (spec.text_of("clusterIP"), spec.get("clusterIPs"));
    let list = all.list();
    if first.is_empty() && !list.is_empty() {
        causes.invalid(&all, "must be empty when `clusterIP` is not specified");
    } else if !first.is_empty() && list.is_empty() {
        causes.required(&all, "");
    } else if !first.is_empty() && list[0] != first {
        causes.invalid(&all, "first value must match `clusterIP`");
    }
    check_families(spec, causes);
    // Comparing with families needs addresses that can be read.
    if !check_each(&all, old, causes) {
        return;
    }
    if list.len() > 1 {
        // `IsDualStackIPStrings` asks only whether both families are there.
        let parsed = list.iter().filter_map(|ip| addresses::parse(ip.as_str()?));
        let (fours, sixes): (Vec<_>, Vec<_>) = parsed.partition(IpAddr::is_ipv4);
        if fours.is_empty() || sixes.is_empty() {
            causes.invalid(&all, "may specify no more than one IP for each IP family");
        }
    }
    let families = spec.get("ipFamilies");
    for (at, (ip, family)) in all.items().zip(families.items()).enumerate() {
        // Enough for an address that was found valid.
        let is_six = ip.text().contains(':');
        let fits = match family.text() {
            "IPv4" => !is_six,
            "IPv6" => is_six,
            _ => true,
        };
        if !fits && !is_headless(spec) {
            let detail = format!(
                "expected an {} value as indicated by `ipFamilies[{at}]`",
                family.text()
            );
            causes.invalid(&ip, &detail);
        }
    }
}

fn check_families(spec: &Field<'_>, causes: &mut Causes) {
    let mut seen = HashSet::new();
    for family in spec.get("ipFamilies").items() {
        causes.check_supported(&family, &["IPv4", "IPv6"]);
        causes.check_unique(&family, &mut seen);
    }
    let policy = spec.get("ipFamilyPolicy");
    if policy.is_set() {
        let supported = &["PreferDualStack", "RequireDualStack", "SingleStack"];
        causes.check_supported(&policy, supported);
    }
}

/// Checks each address, and returns whether all are valid.
fn check_each(all: &Field<'_>, old: Option<&Field<'_>>, causes: &mut Causes) -> bool {
    let known = old.map_or(&[] as &[_], |old| old.get("clusterIPs").list());
    let mut valid = true;
    for (at, ip) in all.items().enumerate() {
        // As a second entry it is an address that cannot be read.
        if at == 0 && ip.text() == "None" {
            if all.list().len() > 1 {
                causes.invalid(all, "'None' must be the first and only value");
                valid = false;
            }
        // An address of an old form stays valid for its Service.
        } else if !known.contains(ip.value()) {
            valid &= addresses::check_ip(&ip, causes);
        }
    }
    if all.list().len() > 2 {
        causes.invalid(all, "may only hold up to 2 values");
    }
    valid
}
