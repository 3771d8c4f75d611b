//! Access to the fields of an object, each of which may be missing or have another type.

use serde_json::Value;

/// An object whose fields are read by JSON pointers.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(&'a Value);

/// A condition in `status.conditions`.
#[derive(Clone, Copy)]
pub(super) struct Condition<'a>(&'a Value);

impl<'a> Fields<'a> {
    pub(super) fn of(object: &'a Value) -> Self {
        Self(object)
    }

    /// Returns whether there is a value other than null.
    pub(super) fn has(self, pointer: &str) -> bool {
        self.0
            .pointer(pointer)
            .is_some_and(|value| !value.is_null())
    }

    pub(super) fn number(self, pointer: &str) -> Option<i64> {
        self.0.pointer(pointer)?.as_i64()
    }

    /// Returns a number of `status`, or 0 if it is missing: API servers omit zeros.
    pub(super) fn count(self, name: &str) -> i64 {
        let value = self.0.get("status").and_then(|status| status.get(name));
        value.and_then(Value::as_i64).unwrap_or_default()
    }

    /// Returns a text, or an empty text.
    pub(super) fn text(self, pointer: &str) -> &'a str {
        let value = self.0.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    pub(super) fn list(self, pointer: &str) -> &'a [Value] {
        let value = self.0.pointer(pointer).and_then(Value::as_array);
        value.map_or(&[], |list| list)
    }

    /// Returns the condition of a type.
    pub(super) fn condition(self, kind: &str) -> Option<Condition<'a>> {
        let mut all = self.list("/status/conditions").iter();
        all.find(|each| each["type"] == kind).map(Condition)
    }

    /// Returns the condition of a type if it is true.
    pub(super) fn true_condition(self, kind: &str) -> Option<Condition<'a>> {
        self.condition(kind).filter(|found| found.is("True"))
    }
}

impl Condition<'_> {
    pub(super) fn is(self, status: &str) -> bool {
        self.0["status"] == status
    }

    pub(super) fn has_reason(self, reason: &str) -> bool {
        self.0["reason"] == reason
    }

    pub(super) fn observed(self) -> Option<i64> {
        self.0["observedGeneration"].as_i64()
    }

    /// Returns the message, or else the reason, or else the condition and its status.
    pub(super) fn message(self) -> String {
        let text = |name: &str| self.0[name].as_str().filter(|text| !text.is_empty());
        let said = text("message")
            .or_else(|| text("reason"))
            .map(str::to_owned);
        said.unwrap_or_else(|| {
            let kind = text("type").unwrap_or_default();
            format!("{kind} is {}", text("status").unwrap_or("missing"))
        })
    }
}
