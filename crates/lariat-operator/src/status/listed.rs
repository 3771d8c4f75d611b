//! Conditions in the status of objects of any type.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::condition::{ConditionUpdate, whole_seconds};
use super::report::is_ours;

/// Returns the condition of a type in a status.
pub(super) fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = status.get("conditions")?.as_array()?;
    conditions.iter().find(|each| each["type"] == kind)
}

/// Returns the merge patch of a status that sets a condition at a time, or `None` if it is as it is to be.
///
/// # Errors
///
/// What is there is not a list.
pub(super) fn set(
    status: &Value,
    update: &ConditionUpdate,
    now: Timestamp,
) -> Result<Option<Value>, String> {
    let mut conditions = match status.get("conditions") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(conditions)) => conditions.clone(),
        Some(_) => return Err("`conditions` is not a list".to_owned()),
    };
    let kind = update.kind();
    let at = conditions.iter().position(|each| each["type"] == kind);
    // What others put into the condition beside what we know stays there.
    let mut condition = at.map_or_else(|| json!({"type": kind}), |at| conditions[at].clone());
    let was = condition.clone();
    if was["status"] != update.status || was["lastTransitionTime"].is_null() {
        condition["lastTransitionTime"] = json!(Time(whole_seconds(now)));
    }
    condition["status"] = update.status.into();
    condition["reason"] = update.reason.as_str().into();
    // Some kinds leave empty messages out, and some know no generation; that alone is no reason to write again and
    // again.
    let lacks = |name: &str| at.is_some() && was.get(name).is_none();
    if !(update.message.is_empty() && lacks("message")) {
        condition["message"] = update.message.as_str().into();
    }
    if let Some(observed) = update.observed
        && !(condition == was && lacks("observedGeneration"))
    {
        condition["observedGeneration"] = observed.into();
    }
    if condition == was {
        return Ok(None);
    }
    match at {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    Ok(Some(json!({"conditions": conditions})))
}

/// Returns the types of the conditions that whoever made `after` of `before` decided on: those that differ, and those
/// with a reason of their own. One of ours that is the same was only carried along.
pub(super) fn decided(before: &Value, after: &Value) -> Vec<String> {
    let conditions = after.get("conditions").and_then(Value::as_array);
    let decided = |condition: &&Value| {
        let kind = condition["type"].as_str().unwrap_or_default();
        let is_carried_along = find(before, kind) == Some(*condition);
        !(is_carried_along && is_ours(condition))
    };
    let decided = conditions.into_iter().flatten().filter(decided);
    decided
        .filter_map(|each| Some(each["type"].as_str()?.to_owned()))
        .collect()
}

/// Returns the status that is wanted with the condition of a type carried along, if it is ours and whoever wants the
/// status says nothing of it.
pub(super) fn with_reported(now: &Value, wanted: &Value, kind: &str) -> Value {
    let mut wanted = wanted.clone();
    let ours = find(now, kind).filter(|ours| is_ours(ours));
    let Some(ours) = ours.filter(|_| find(&wanted, kind).is_none()) else {
        return wanted;
    };
    match wanted.get_mut("conditions") {
        None | Some(Value::Null) => wanted["conditions"] = json!([ours]),
        Some(Value::Array(conditions)) => conditions.push(ours.clone()),
        Some(_) => {}
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Sets a condition in a status whose patches are whole.
    fn set_in(status: &mut Value, update: &ConditionUpdate, second: i64) -> bool {
        let patch = set(status, update, at(second)).unwrap();
        let changed = patch.is_some();
        if let Some(patch) = patch {
            status["conditions"] = patch["conditions"].clone();
        }
        changed
    }

    #[test]
    fn a_condition_is_set_among_others_and_keeps_what_is_not_known() {
        let mut status =
            json!({"conditions": [{"type": "A"}, {"type": "B", "status": "True", "weight": 3}]});
        let update = ConditionUpdate::is_true("B", "Is").message("m").observed(4);
        assert!(set_in(&mut status, &update, 10));
        assert!(!set_in(&mut status, &update, 20));
        assert!(set_in(
            &mut status,
            &ConditionUpdate::is_false("B", "IsNot").observed(4),
            30
        ));
        let expected = json!([{"type": "A"}, {
            "type": "B", "status": "False", "weight": 3, "reason": "IsNot", "message": "",
            "observedGeneration": 4, "lastTransitionTime": "1970-01-01T00:00:30Z",
        }]);
        assert_eq!(status["conditions"], expected);
    }

    #[test]
    fn a_kind_that_loses_the_generation_is_not_written_over_and_over() {
        let mut status = json!({});
        let update = ConditionUpdate::is_true("A", "Is").observed(4);
        assert!(set_in(&mut status, &update, 10));
        let condition = status["conditions"][0].as_object_mut().unwrap();
        condition.remove("observedGeneration");
        assert!(!set_in(&mut status, &update, 10));
        let list = json!({"conditions": {"A": "True"}});
        assert!(set(&list, &update, at(1)).is_err());
    }

    #[test]
    fn what_was_carried_along_was_not_decided() {
        let ours = json!({"type": "Ready", "status": "False", "reason": "ReconcileError"});
        let own = json!({"type": "Ready", "reason": "Waiting"});
        // Our reason, in a condition that says more than we do.
        let alike =
            json!({"type": "Ready", "status": "True", "reason": "Reconciled", "message": "3 of 3"});
        for (before, after, expected) in [
            (&ours, &ours, false),
            (&own, &own, true),
            (&ours, &own, true),
            (&own, &ours, true),
            (&alike, &alike, true),
        ] {
            let status = |condition: &Value| json!({"conditions": [condition]});
            let decided = decided(&status(before), &status(after));
            assert_eq!(!decided.is_empty(), expected, "{before} {after}");
        }
        assert!(decided(&json!({}), &json!({})).is_empty());
    }
}
