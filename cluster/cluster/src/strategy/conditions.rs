//! Conditions in the status of an object, whatever a client made of it.

use serde_json::{Value, json};

use lariat_apimachinery::object::Object;

/// Returns the status of an object as an object.
pub(crate) fn status_mut(object: &mut Object) -> &mut Value {
    let status = object.entry("status").or_insert_with(|| json!({}));
    if !status.is_object() {
        *status = json!({});
    }
    status
}

/// Sets a condition in a status; its transition time moves only with its status.
pub(crate) fn set_condition(object: &mut Object, mut condition: Value, now: &str) {
    let conditions = &mut status_mut(object)["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let known = conditions
        .as_array_mut()
        .expect("it was just made an array");
    let place = known
        .iter()
        .position(|each| each["type"] == condition["type"]);
    let unmoved = place.filter(|at| known[*at]["status"] == condition["status"]);
    condition["lastTransitionTime"] = match unmoved {
        Some(at) => known[at]["lastTransitionTime"].clone(),
        None => now.into(),
    };
    match place {
        Some(at) => known[at] = condition,
        None => known.push(condition),
    }
}
