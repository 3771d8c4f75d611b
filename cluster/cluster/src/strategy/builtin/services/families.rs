//! The families of a Service's addresses; the cluster has only IPv4.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::validation::validate_service_addresses;
use serde_json::{Value, json};

use super::allocation::Allocation;
use super::spec::{is_external, kind, spec_mut};
use crate::status::ApiError;
use crate::strategy::builtin::parts::{at, is_void};

const POLICY: &str = "spec.ipFamilyPolicy";

/// Chooses IP families by default, and refuses those the cluster lacks.
///
/// Source: `initIPFamilyFields` in `k8s.io/kubernetes/pkg/registry/core/service/storage`.
pub(super) fn choose(
    allocation: &Allocation<'_>,
    old: Option<&Object>,
    object: &mut Object,
) -> Result<(), ApiError> {
    // The second as isMatchingPreferDualStackClusterIPFields.
    if is_external(object) || old.is_some_and(|old| prefers_same(old, object)) {
        return Ok(());
    }
    set_policy(old, object);
    let refuse = |object: &Object, causes: Vec<StatusCause>| {
        let name = metadata_text(object, "name");
        match &causes[..] {
            [] => Ok(()),
            causes => Err(ApiError::invalid(allocation.resource, name, causes)),
        }
    };
    let causes = validate_service_addresses(object, old);
    refuse(object, causes)?;
    let causes = settle(old, object);
    refuse(object, causes)?;
    if is_free(object) {
        complete(object);
        return Ok(());
    }
    let causes = unknown_families(object);
    refuse(object, causes)?;
    if is_void(at(object, &["spec", "ipFamilies"])) {
        spec_mut(object)["ipFamilies"] = json!(["IPv4"]);
    }
    Ok(())
}

fn list<'a>(object: &'a Object, member: &str) -> &'a [Value] {
    let list = at(object, &["spec", member]).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn policy(object: &Object) -> &str {
    let policy = at(object, &["spec", "ipFamilyPolicy"]);
    policy.and_then(Value::as_str).unwrap_or_default()
}

/// Returns whether nothing is to be chosen: both states would like two families, and nothing else is said.
fn prefers_same(old: &Object, new: &Object) -> bool {
    const PREFERRED: &str = "PreferDualStack";
    let members = ["clusterIPs", "ipFamilies"];
    policy(new) == PREFERRED
        && matches!(policy(old), PREFERRED | "")
        && kind(old) == kind(new)
        && members
            .iter()
            .all(|member| list(old, member) == list(new, member))
}

/// Returns whether a Service has neither address nor selector.
///
/// Such a Service may have any family.
fn is_free(object: &Object) -> bool {
    let headless = at(object, &["spec", "clusterIP"]) == Some(&"None".into());
    headless && is_void(at(object, &["spec", "selector"]))
}

fn set_policy(old: Option<&Object>, object: &mut Object) {
    if at(object, &["spec", "ipFamilyPolicy"]).is_some_and(|policy| !policy.is_null()) {
        return;
    }
    let chosen = match old.map(policy) {
        Some(policy) if !policy.is_empty() => policy,
        // Without addresses and Pods of its own it can promise every family.
        _ if is_free(object) => "RequireDualStack",
        _ => "SingleStack",
    };
    let chosen = Value::from(chosen);
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("ipFamilyPolicy".into(), chosen);
    }
}

/// Brings policy, addresses and families in line with each other.
fn settle(old: Option<&Object>, object: &mut Object) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let shown = Value::from(policy(object));
    let single = policy(object) == "SingleStack";
    if let Some(old) = old {
        for (member, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
            let (was, is) = (list(old, member), list(object, member));
            if single && was == is && is.len() > 1 {
                // A change of the policy alone is enough to give up the second one.
                spec_mut(object)[member] = json!([is[0]]);
            } else if !single && !is.is_empty() && is.len() < was.len() {
                let detail = format!("must be 'SingleStack' to release the secondary {what}");
                causes.push(StatusCause::invalid(POLICY, &shown, &detail));
            }
        }
    }
    for (member, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if single && list(object, member).len() == 2 {
            let detail = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            causes.push(StatusCause::invalid(POLICY, &shown, &detail));
        }
    }
    // A family is inferred from an address only where none is given; validation compares the given ones.
    let mut families = list(object, "ipFamilies").to_vec();
    let addresses = list(object, "clusterIPs");
    for (index, address) in addresses.iter().enumerate() {
        let text = address.as_str().unwrap_or_default();
        if text == "None" {
            break;
        }
        if index < families.len() {
            continue;
        }
        if text.contains(':') {
            let field = format!("spec.clusterIPs[{index}]");
            let all = Value::from(addresses.to_vec());
            let detail = "IPv6 is not configured on this cluster";
            causes.push(StatusCause::invalid(&field, &all, detail));
        } else {
            families.push("IPv4".into());
        }
    }
    if !families.is_empty() {
        spec_mut(object)["ipFamilies"] = families.into();
    }
    causes
}

/// Sets both families of a Service without address and selector, unless it wants one.
fn complete(object: &mut Object) {
    let single = policy(object) == "SingleStack";
    let mut families = list(object, "ipFamilies").to_vec();
    if families.is_empty() {
        families.push("IPv4".into());
    }
    if families.len() < 2 && !single {
        let other = if families[0] == "IPv4" {
            "IPv6"
        } else {
            "IPv4"
        };
        families.push(other.into());
    }
    spec_mut(object)["ipFamilies"] = families.into();
}

fn unknown_families(object: &Object) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    if policy(object) == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        causes.push(StatusCause::invalid(POLICY, &policy(object).into(), detail));
    }
    for (index, family) in list(object, "ipFamilies").iter().enumerate() {
        if family != "IPv4" {
            let field = format!("spec.ipFamilies[{index}]");
            let detail = "not configured on this cluster";
            causes.push(StatusCause::invalid(&field, family, detail));
        }
    }
    causes
}
