//! Conditions in a status.

use serde_json::{Value, json};

/// Returns the condition of a type.
pub(super) fn find<'a>(conditions: &'a Value, kind: &str) -> Option<&'a Value> {
    let mut conditions = conditions.as_array()?.iter();
    conditions.find(|condition| condition["type"] == kind)
}

pub(super) fn is_true(conditions: &Value, kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Removes the condition of a type.
pub(super) fn remove(conditions: &mut Value, kind: &str) {
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.retain(|condition| condition["type"] != kind);
    }
}

/// A condition to be set.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    kind: &'static str,
    is_true: bool,
    reason: &'static str,
    message: String,
}

impl Condition {
    pub(super) fn new(kind: &'static str, is_true: bool) -> Self {
        Self {
            kind,
            is_true,
            reason: "",
            message: String::new(),
        }
    }

    pub(super) fn because(self, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            ..self
        }
    }

    /// Sets the condition in a list; its transition time moves only with its status. With `probed`, the time under
    /// that name moves with every change.
    pub(super) fn set(self, conditions: &mut Value, now: &str, probed: Option<&str>) {
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        let known = conditions
            .as_array_mut()
            .expect("it was just made an array");
        let status = if self.is_true { "True" } else { "False" };
        let mut next = json!({"type": self.kind, "status": status, "lastTransitionTime": now});
        if !self.reason.is_empty() {
            next["reason"] = self.reason.into();
            next["message"] = self.message.into();
        }
        let before = known.iter_mut().find(|each| each["type"] == self.kind);
        if let Some(probed) = probed {
            next[probed] = now.into();
        }
        let Some(before) = before else {
            known.push(next);
            return;
        };
        if before["status"] == next["status"] {
            next["lastTransitionTime"] = before["lastTransitionTime"].clone();
        }
        // The times do not count: every reconcile would be a change otherwise, which leads to the next one.
        let is_same = ["status", "reason", "message"]
            .iter()
            .all(|member| before.get(member) == next.get(member));
        if !is_same {
            *before = next;
        }
    }
}
