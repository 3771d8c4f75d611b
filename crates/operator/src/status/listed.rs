//! Conditions as JSON, in the status of objects of any type.
//!
//! Beside the plain operations it has the rules for the condition in which a reconciler reports errors: when it may be
//! written, and what a status that is written as a whole does to it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::condition::{ConditionUpdate, whole_seconds};
use super::report::{is_failure, is_ours};

/// Returns the condition of a type in a status, if there is one.
pub(super) fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = status.get("conditions")?.as_array()?;
    conditions.iter().find(|each| each["type"] == kind)
}

/// Returns the merge patch that sets a condition, or `None` if it is set already.
///
/// # Errors
///
/// `conditions` is not a list.
pub(super) fn set(
    status: &Value,
    update: &ConditionUpdate,
    now: Timestamp,
) -> Result<Option<Value>, String> {
    let mut conditions = list_of(status)?;
    let kind = update.kind();
    let at = conditions.iter().position(|each| each["type"] == kind);
    // Members that others have added to the condition are kept.
    let mut condition = at.map_or_else(|| json!({"type": kind}), |at| conditions[at].clone());
    let was = condition.clone();
    if was["status"] != update.status || was["lastTransitionTime"].is_null() {
        condition["lastTransitionTime"] = json!(Time(whole_seconds(now)));
    }
    condition["status"] = update.status.into();
    condition["reason"] = update.reason.as_str().into();
    // Some kinds omit empty messages, and some have no observed generation in their schema. Such a missing member alone
    // causes no write: the API server would drop it again, and each call would write once more.
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

/// Returns whether a condition was observed at a newer generation than an update.
///
/// Generations that the object has not reached do not count: a restored backup may have put the object back.
pub(super) fn is_newer(was: &Value, update: &ConditionUpdate, generation: Option<i64>) -> bool {
    let (seen, observed) = (was["observedGeneration"].as_i64(), update.observed);
    // An update without a generation claims nothing about one, and is always written.
    observed.is_some() && seen > observed && seen <= generation
}

/// Returns the types of the conditions that a change from `before` to `after` sets.
///
/// These are the conditions that differ, and those whose reason is not the reporter's. An unchanged condition of the
/// reporter was only copied from the present status.
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

/// The conditions in which the reconcilers of a kind report errors.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// The type of the reconciler that writes.
    pub(super) own: Option<Arc<str>>,
    /// The types of the other reconcilers, which only they set.
    pub(super) others: Vec<Arc<str>>,
}

/// A status that can be written before the call has ended.
#[derive(Debug, PartialEq)]
pub(super) struct Settled {
    pub(super) status: Value,
    /// The value for the condition that reports errors, once the call has succeeded.
    pub(super) pending: Option<Value>,
}

impl Reported {
    /// Splits a new status into what can be written now and what must wait.
    ///
    /// Reporting conditions that the new status lacks are copied from the present one. A reported failure stays until
    /// the call has succeeded. If each attempt removed it and reported it again, each attempt would be a change that
    /// calls the reconciler immediately, without backoff.
    pub(super) fn settle(&self, now: &Value, mut status: Value) -> Settled {
        let mut pending = None;
        let mut carries = false;
        // Three cases for the condition of the writing reconciler: a present failure stays, and the given value is kept
        // for the end of the call; a condition that only this reporter writes is copied if it is not given; anything
        // else is written as given.
        let standing = self.own.as_deref().and_then(|kind| find(now, kind));
        if let Some(standing) = standing {
            match find_mut(&mut status, &standing["type"]) {
                Some(said) if is_failure(standing) => {
                    let said = std::mem::replace(said, standing.clone());
                    // The new status may have been made from an older state, with a failure in it. That is not a value
                    // of the call's own.
                    pending = Some(said).filter(|said| !is_failure(said));
                }
                None if is_ours(standing) => carries |= push(&mut status, standing),
                _ => {}
            }
        }
        // Only the other reconcilers know their results, so this status must not remove them.
        for kind in &self.others {
            let standing = find(now, kind);
            if let Some(standing) = standing.filter(|_| find(&status, kind).is_none()) {
                carries |= push(&mut status, standing);
            }
        }
        if carries {
            order_as(now, &mut status);
        }
        Settled { status, pending }
    }
}

impl From<Value> for Settled {
    fn from(status: Value) -> Self {
        let pending = None;
        Self { status, pending }
    }
}

/// Returns the merge patch that puts a condition into a status.
///
/// `None` if the status has it already.
///
/// # Errors
///
/// `conditions` is not a list.
pub(super) fn place(status: &Value, condition: &Value) -> Result<Option<Value>, String> {
    let mut conditions = list_of(status)?;
    let kind = &condition["type"];
    match conditions.iter_mut().find(|each| each["type"] == *kind) {
        Some(known) if known == condition => return Ok(None),
        Some(known) => known.clone_from(condition),
        None => conditions.push(condition.clone()),
    }
    Ok(Some(json!({"conditions": conditions})))
}

fn list_of(status: &Value) -> Result<Vec<Value>, String> {
    match status.get("conditions") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(conditions)) => Ok(conditions.clone()),
        Some(_) => Err("`conditions` is not a list".to_owned()),
    }
}

fn find_mut<'a>(status: &'a mut Value, kind: &Value) -> Option<&'a mut Value> {
    let conditions = status.get_mut("conditions")?.as_array_mut()?;
    conditions.iter_mut().find(|each| each["type"] == *kind)
}

/// Appends a condition; returns `false` if `conditions` is not a list.
fn push(status: &mut Value, condition: &Value) -> bool {
    match status.get_mut("conditions") {
        None | Some(Value::Null) => status["conditions"] = json!([condition]),
        Some(Value::Array(conditions)) => conditions.push(condition.clone()),
        Some(_) => return false,
    }
    true
}

/// Sorts conditions in the order of the present status, new ones last.
///
/// Lists are compared as a whole. Two reconcilers that copy each other's conditions in different orders would otherwise
/// change the status in turns, endlessly.
fn order_as(now: &Value, status: &mut Value) {
    let present = now.get("conditions").and_then(Value::as_array);
    let wanted = status.get_mut("conditions").and_then(Value::as_array_mut);
    if let (Some(present), Some(wanted)) = (present, wanted) {
        let position = |each: &Value| present.iter().position(|was| was["type"] == each["type"]);
        wanted.sort_by_key(|each| position(each).unwrap_or(usize::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_was_observed_of_a_newer_spec_is_newer_unless_the_object_never_had_it() {
        let was = json!({"type": "Ready", "observedGeneration": 5});
        let update = |observed: i64| ConditionUpdate::is_true("Ready", "Is").observed(observed);
        assert!(is_newer(&was, &update(4), Some(5)));
        assert!(!is_newer(&was, &update(5), Some(5)));
        assert!(!is_newer(&was, &update(6), Some(6)));
        assert!(
            !is_newer(&was, &update(4), Some(4)),
            "a backup was restored"
        );
        assert!(!is_newer(&json!({"type": "Ready"}), &update(1), Some(5)));
        let update = ConditionUpdate::is_true("Ready", "Is");
        assert!(!is_newer(&was, &update, Some(5)), "no generation is said");
    }

    /// Sets a condition in a status that is patched whole.
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
        // The reporter's reason, in a condition with more fields than it writes.
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

    #[test]
    fn a_failure_that_is_reported_stays_until_the_call_has_ended() {
        let reported = Reported {
            own: Some("Ready".into()),
            others: vec!["Other".into()],
        };
        let failure = |message: &str| json!({"type": "Ready", "status": "False", "reason": "ReconcileError", "message": message});
        let said = json!({"type": "Ready", "status": "True", "reason": "Is"});
        let other = json!({"type": "Other", "status": "False", "reason": "TheirOwn"});
        let foreign = json!({"type": "Foreign", "status": "True"});
        let status = |conditions: &[&Value]| json!({"size": 1, "conditions": conditions});
        for (now, wanted, written, pending) in [
            (
                status(&[&failure("a"), &foreign]),
                status(&[&said]),
                status(&[&failure("a")]),
                Some(&said),
            ),
            (
                status(&[&failure("a")]),
                status(&[&failure("older")]),
                status(&[&failure("a")]),
                None,
            ),
            (
                status(&[&failure("a"), &other]),
                json!({"size": 2}),
                json!({"size": 2, "conditions": [failure("a"), other]}),
                None,
            ),
            (
                status(&[&said, &other]),
                status(&[]),
                status(&[&other]),
                None,
            ),
            (
                status(&[&other, &said]),
                status(&[&foreign, &said]),
                status(&[&other, &said, &foreign]),
                None,
            ),
            (json!({}), status(&[&said]), status(&[&said]), None),
        ] {
            let settled = reported.settle(&now, wanted.clone());
            let expected = Settled {
                status: written,
                pending: pending.cloned(),
            };
            assert_eq!(settled, expected, "{now} {wanted}");
        }
    }

    #[test]
    fn a_condition_is_placed_as_it_is() {
        let (one, two) = (json!({"type": "A", "more": 1}), json!({"type": "B"}));
        let status = json!({"conditions": [two]});
        let placed = json!({"conditions": [two, one]});
        assert_eq!(place(&status, &one), Ok(Some(placed.clone())));
        assert_eq!(place(&placed, &one), Ok(None));
        let other = json!({"type": "A"});
        let expected = json!({"conditions": [two, other]});
        assert_eq!(place(&placed, &other), Ok(Some(expected)));
        assert!(place(&json!({"conditions": 1}), &one).is_err());
    }
}
