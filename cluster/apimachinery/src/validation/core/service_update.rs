//! Updates and the status of Services.

use serde_json::Value;

use super::service_kind::{is_balanced, is_headless, needs_check};
use crate::validation::addresses;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::formats;

pub(super) fn check(spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    let external = |spec: &Field<'_>| spec.text_of("type") == "ExternalName";
    // From and to a name, addresses come and go.
    if !external(spec) && !external(old) {
        check_addresses(spec, old, causes);
        check_families(spec, old, causes);
    }
    let class = spec.get("loadBalancerClass");
    let both = is_balanced(spec) && is_balanced(old);
    // A balancer that serves the Service would have to be replaced; with another type there is none.
    if both && class.value() != old.member("loadBalancerClass") {
        causes.invalid(&class, "may not change once set");
    }
    let port = |spec: &Field<'_>| spec.int_of("healthCheckNodePort").unwrap_or(0);
    if needs_check(spec) && needs_check(old) && port(spec) != port(old) {
        causes.forbidden(&spec.get("healthCheckNodePort"), "field is immutable");
    }
}

fn item<'a>(list: &Field<'a>, at: usize) -> Field<'a> {
    // Go shows the whole list at the path of the item.
    list.item_as(at, list.value())
}

fn check_addresses(spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    // Becoming headless or giving it up is a change of the first address, which is refused below.
    if is_headless(spec) && is_headless(old) {
        return;
    }
    let (new, was) = (spec.get("clusterIPs"), old.get("clusterIPs"));
    // `validateUpgradeDowngradeClusterIPs`: single to dual stack and back, with the first one fixed.
    check_list(&new, &was, "primary clusterIP can not be unset", causes);
    check_release(spec, &new, &was, "clusterIP", causes);
}

fn check_families(spec: &Field<'_>, old: &Field<'_>, causes: &mut Causes) {
    if is_headless(spec) || is_headless(old) {
        return;
    }
    let (new, was) = (spec.get("ipFamilies"), old.get("ipFamilies"));
    check_list(&new, &was, "primary ipFamily can not be unset", causes);
    check_release(spec, &new, &was, "ipFamily", causes);
}

/// Checks that the first entry does not change; a second may be added and removed.
fn check_list(new: &Field<'_>, was: &Field<'_>, unset: &str, causes: &mut Causes) {
    let (now, before) = (new.list(), was.list());
    let changed = "may not change once set";
    if now.len() == before.len() {
        for (at, (now, before)) in now.iter().zip(before).enumerate() {
            if now != before {
                causes.invalid(&item(new, at), changed);
            }
        }
        return;
    }
    match (now.first(), before.first()) {
        (None, Some(_)) => causes.invalid_as(&item(new, 0), Value::Array(Vec::new()), unset),
        (Some(now), Some(before)) if now != before => causes.invalid(&item(new, 0), changed),
        _ => {}
    }
}

/// Checks that the second is given up on purpose.
fn check_release(
    spec: &Field<'_>,
    new: &Field<'_>,
    was: &Field<'_>,
    what: &str,
    causes: &mut Causes,
) {
    let policy = spec.get("ipFamilyPolicy");
    // Without the policy a client that knows one address only would release the other by accident.
    let released = was.list().len() > 1 && new.list().len() == 1;
    if released && policy.text() != "SingleStack" {
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        causes.invalid(&policy, &detail);
    }
}

pub(super) fn check_status(context: &Context<'_>, causes: &mut Causes) {
    let at = context.get("status").get("loadBalancer").get("ingress");
    if at.is_void() {
        return;
    }
    // `ValidateServiceStatusUpdate`, with the spec of the stored object.
    if !is_balanced(&context.get("spec")) {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        causes.forbidden(&at, detail);
        return;
    }
    let old = context
        .old("status")
        .map(|old| old.get("loadBalancer").get("ingress"));
    let known: Vec<&str> = old
        .iter()
        .flat_map(Field::items)
        .map(|each| each.text_of("ip"))
        .collect();
    for ingress in at.items() {
        check_ingress(&ingress, &known, causes);
    }
}

fn check_ingress(ingress: &Field<'_>, known: &[&str], causes: &mut Causes) {
    let (ip, mode) = (ingress.get("ip"), ingress.get("ipMode"));
    if !ip.is_void() && !known.contains(&ip.text()) {
        addresses::check_ip(&ip, causes);
    }
    match (ip.is_void(), mode.is_set()) {
        (false, false) => causes.required(&mode, "must be specified when `ip` is set"),
        (true, true) => causes.forbidden(&mode, "may not be specified when `ip` is not set"),
        (false, true) => causes.check_supported(&mode, &["Proxy", "VIP"]),
        (true, false) => {}
    }
    let name = ingress.get("hostname");
    if name.is_void() {
        return;
    }
    causes.check_format(&name, formats::dns_subdomain);
    // Digits and dots are a valid name, so this has to be asked.
    if addresses::parse(name.text()).is_some() {
        causes.invalid(&name, "must be a DNS name, not an IP address");
    }
}
