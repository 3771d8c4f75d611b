//! The strategy of CertificateSigningRequests.
//!
//! Source: `pkg/registry/certificates/certificates/strategy.go`.

use lariat_apimachinery::object::Object;
use serde_json::Value;

use crate::strategy::metadata::copy_member;
use crate::strategy::part::Part;

/// Keeps the request of a CSR, and its conditions on writes of the status.
pub(in crate::strategy) fn keep(part: Part, old: &Object, new: &mut Object) {
    copy_member(old, new, "spec");
    if part != Part::Status {
        return;
    }
    for decision in ["Approved", "Denied"] {
        let kept: Vec<Value> = of_type(conditions(old), decision).cloned().collect();
        // What comes or goes is refused later.
        if of_type(conditions(new), decision).count() != kept.len() {
            continue;
        }
        let new = conditions_mut(new).iter_mut();
        let places = new.filter(|condition| condition["type"] == decision);
        places
            .zip(kept)
            .for_each(|(place, condition)| *place = condition);
    }
}

/// Fills in the times that conditions lack.
pub(in crate::strategy) fn stamp(now: &str, old: &Object, new: &mut Object) {
    for condition in conditions_mut(new) {
        let unmoved = conditions(old).iter().find(|known| {
            known["type"] == condition["type"] && known["status"] == condition["status"]
        });
        let since = unmoved.and_then(|known| known["lastTransitionTime"].as_str());
        let Some(condition) = condition.as_object_mut() else {
            continue;
        };
        for (member, time) in [
            ("lastUpdateTime", now),
            ("lastTransitionTime", since.unwrap_or(now)),
        ] {
            if condition.get(member).is_none_or(Value::is_null) {
                condition.insert(member.into(), time.into());
            }
        }
    }
}

fn of_type<'a>(conditions: &'a [Value], name: &str) -> impl Iterator<Item = &'a Value> {
    conditions
        .iter()
        .filter(move |condition| condition["type"] == name)
}

fn conditions(object: &Object) -> &[Value] {
    let status = object.get("status");
    let conditions = status.and_then(|status| status.get("conditions")?.as_array());
    conditions.map_or(&[], Vec::as_slice)
}

fn conditions_mut(object: &mut Object) -> &mut [Value] {
    let status = object.get_mut("status");
    let conditions = status.and_then(|status| status.get_mut("conditions")?.as_array_mut());
    conditions.map_or(&mut [], Vec::as_mut_slice)
}
