//! PersistentVolumes.
//!
//! Source: `pkg/registry/core/persistentvolume/strategy.go`.

use lariat_apimachinery::object::Object;
use serde_json::Value;

use super::parts::at;

const SINCE: &str = "lastPhaseTransitionTime";

/// Writes when the phase changed, unless whoever changed it says so.
pub(in crate::strategy) fn stamp(now: &str, old: &Object, new: &mut Object) {
    let phase = |object: &Object| at(object, &["status", "phase"]).cloned();
    let since = at(old, &["status", SINCE]).cloned();
    let changed = phase(old) != phase(new);
    let Some(status) = new.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let said = status.get(SINCE).filter(|time| !time.is_null());
    let time = match (changed, said) {
        (false, None) => since,
        (true, said) if said.is_none() || said == since.as_ref() => Some(now.into()),
        _ => return,
    };
    if let Some(time) = time {
        status.insert(SINCE.into(), time);
    }
}
