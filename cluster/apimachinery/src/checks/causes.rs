//! The causes for which an object is invalid.

use std::collections::HashSet;

use serde_json::Value;

use super::equality::are_equal;
use super::field::Field;
use super::formats::Format;
use super::structs::{self, Members};
use crate::cause::StatusCause;
use crate::go_text;

/// Collects the causes for which an object is invalid.
///
/// The methods without a condition in their name add a cause; the others look at the value first.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    list: Vec<StatusCause>,
}

impl Causes {
    /// Returns the causes that were found.
    pub(crate) fn into_list(self) -> Vec<StatusCause> {
        self.list
    }

    /// Returns how many causes there are.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// Adds a value that must be there; the detail may be empty.
    pub(crate) fn required(&mut self, at: &Field<'_>, detail: &str) {
        self.list
            .push(StatusCause::required(&at.to_string(), detail));
    }

    /// Adds a value that is not allowed.
    pub(crate) fn invalid(&mut self, at: &Field<'_>, detail: &str) {
        self.invalid_as(at, at.value().clone(), detail);
    }

    /// Adds a value that is not allowed, and is shown in another form.
    pub(crate) fn invalid_as(&mut self, at: &Field<'_>, shown: impl Into<Value>, detail: &str) {
        let cause = StatusCause::invalid(&at.to_string(), &shown.into(), detail);
        self.list.push(cause);
    }

    /// Adds a value that is not allowed, and is not shown.
    pub(crate) fn invalid_hidden(&mut self, at: &Field<'_>, detail: &str) {
        self.add("FieldValueInvalid", at, format!("Invalid value: {detail}"));
    }

    /// Adds a value that is not allowed here, or not now.
    pub(crate) fn forbidden(&mut self, at: &Field<'_>, detail: &str) {
        self.list
            .push(StatusCause::forbidden(&at.to_string(), detail));
    }

    /// Adds a value that is there twice.
    pub(crate) fn duplicate(&mut self, at: &Field<'_>) {
        self.duplicate_as(at, at.value().clone());
    }

    /// Adds a value that is there twice, and is shown in another form.
    pub(crate) fn duplicate_as(&mut self, at: &Field<'_>, shown: impl Into<Value>) {
        self.duplicate_struct(at, &go_text::shown(&shown.into()), "");
    }

    /// Adds a text that is in `seen`; returns whether it was new, and puts it there.
    pub(crate) fn check_unique<'a>(&mut self, at: &Field<'a>, seen: &mut HashSet<&'a str>) -> bool {
        let is_new = seen.insert(at.text());
        if !is_new {
            self.duplicate_as(at, at.text());
        }
        is_new
    }

    /// Adds a structure that is there twice, as Go shows it; the detail may be empty.
    pub(crate) fn duplicate_struct(&mut self, at: &Field<'_>, shown: &str, detail: &str) {
        let colon = if detail.is_empty() { "" } else { ": " };
        let message = format!("Duplicate value: {shown}{colon}{detail}");
        self.add("FieldValueDuplicate", at, message);
    }

    /// Adds a value that is not allowed, and is shown as JSON: a pointer in Go.
    pub(crate) fn invalid_json(&mut self, at: &Field<'_>, detail: &str) {
        self.invalid_struct(at, &go_text::json(at.value()), detail);
    }

    /// Adds a structure that is not allowed, as Go shows it.
    pub(crate) fn invalid_struct(&mut self, at: &Field<'_>, shown: &str, detail: &str) {
        // Go writes no colon before a detail that is empty.
        let colon = if detail.is_empty() { "" } else { ": " };
        let message = format!("Invalid value: {shown}{colon}{detail}");
        self.add("FieldValueInvalid", at, message);
    }

    /// Adds a name of something that is not there.
    pub(crate) fn not_found(&mut self, at: &Field<'_>, shown: impl Into<Value>) {
        let message = format!("Not found: {}", go_text::shown(&shown.into()));
        self.add("FieldValueNotFound", at, message);
    }

    /// Adds a reference to something that does not exist, with where it should be.
    pub(crate) fn not_found_because(&mut self, at: &Field<'_>, shown: &str, detail: &str) {
        self.add(
            "FieldValueNotFound",
            at,
            format!("Not found: {}: {detail}", go_text::quoted(shown)),
        );
    }

    /// Adds an unsupported value; the message lists the supported ones in this order.
    ///
    /// The message has the text as JSON: Go's `field.Error` quotes only plain strings, and these have named types.
    pub(crate) fn unsupported(&mut self, at: &Field<'_>, supported: &[&str]) {
        let json = go_text::json(&at.text().into());
        self.unsupported_text(at, &json, supported);
    }

    /// Adds a value that is none of the supported ones, and is shown in another form.
    pub(crate) fn unsupported_as(
        &mut self,
        at: &Field<'_>,
        shown: impl Into<Value>,
        supported: &[&str],
    ) {
        self.unsupported_text(at, &go_text::shown(&shown.into()), supported);
    }

    /// Adds a value that is none of the supported ones, and is shown as the given JSON.
    pub(crate) fn unsupported_text(&mut self, at: &Field<'_>, shown: &str, supported: &[&str]) {
        let names: Vec<String> = supported.iter().map(|name| format!("{name:?}")).collect();
        let mut message = format!("Unsupported value: {shown}");
        if !names.is_empty() {
            message += ": supported values: ";
            message += &names.join(", ");
        }
        self.add("FieldValueNotSupported", at, message);
    }

    /// Adds a text of more than some bytes.
    pub(crate) fn too_long(&mut self, at: &Field<'_>, most: usize) {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let message = format!("Too long: may not be more than {most} {unit}");
        self.add("FieldValueTooLong", at, message);
    }

    /// Adds a list of more than some items.
    pub(crate) fn too_many(&mut self, at: &Field<'_>, most: usize) {
        self.too_many_of(at, at.list().len(), most);
    }

    /// Adds something of which there are more than some.
    pub(crate) fn too_many_of(&mut self, at: &Field<'_>, count: usize, most: usize) {
        let unit = if most == 1 { "item" } else { "items" };
        let message = format!("Too many: {count}: must have at most {most} {unit}");
        self.add("FieldValueTooMany", at, message);
    }

    /// Adds an error of the server itself.
    pub(crate) fn internal(&mut self, at: &Field<'_>, detail: &str) {
        self.add("InternalError", at, format!("Internal error: {detail}"));
    }

    fn add(&mut self, reason: &'static str, at: &Field<'_>, message: String) {
        self.list
            .push(StatusCause::new(reason, &at.to_string(), message));
    }

    /// Checks that something is there that is not empty, and returns whether it is.
    pub(crate) fn check_given(&mut self, at: &Field<'_>, detail: &str) -> bool {
        if at.is_void() {
            self.required(at, detail);
        }
        !at.is_void()
    }

    /// Checks the form of a text, also of an empty one.
    pub(crate) fn check_format(&mut self, at: &Field<'_>, format: Format) {
        self.check_format_of(at, at.text(), format);
    }

    /// Checks the form of a text that belongs to a place, such as a key of a map.
    pub(crate) fn check_format_of(&mut self, at: &Field<'_>, text: &str, format: Format) {
        for message in format(text) {
            self.invalid_as(at, text, &message);
        }
    }

    /// Checks that a text is there, and its form.
    pub(crate) fn check_name(&mut self, at: &Field<'_>, format: Format) {
        if self.check_given(at, "") {
            self.check_format(at, format);
        }
    }

    /// Checks that a text is there, and one of the supported ones.
    pub(crate) fn check_one_of(&mut self, at: &Field<'_>, supported: &[&str]) {
        if self.check_given(at, "") {
            self.check_supported(at, supported);
        }
    }

    /// Checks that a text is one of the supported ones; an empty one is not.
    pub(crate) fn check_supported(&mut self, at: &Field<'_>, supported: &[&str]) {
        if !supported.contains(&at.text()) {
            self.unsupported(at, supported);
        }
    }

    /// Checks a text that has no type of its own in Go, and is therefore quoted.
    pub(crate) fn check_plain(&mut self, at: &Field<'_>, supported: &[&str]) {
        if !supported.contains(&at.text()) {
            self.unsupported_as(at, at.text(), supported);
        }
    }

    /// Checks a number that may be missing, but not be below zero.
    pub(crate) fn check_not_negative(&mut self, at: &Field<'_>) {
        if at.int().is_some_and(|number| number < 0) {
            self.invalid(at, "must be greater than or equal to 0");
        }
    }

    /// Checks that a number is above zero, if there is one.
    pub(crate) fn check_positive(&mut self, at: &Field<'_>) {
        if at.int().is_some_and(|number| number <= 0) {
            self.invalid(at, "must be greater than 0");
        }
    }

    /// Checks that a number, or zero if there is none, is within bounds.
    pub(crate) fn check_between(&mut self, at: &Field<'_>, least: i64, most: i64) {
        let number = at.int().unwrap_or(0);
        if !(least..=most).contains(&number) {
            let detail = format!("must be between {least} and {most}, inclusive");
            self.invalid_as(at, number, &detail);
        }
    }

    /// Checks that a value is the same as it was.
    pub(crate) fn check_immutable(&mut self, at: &Field<'_>, old: &Field<'_>) {
        if are_equal(at.value(), old.value()) {
            return;
        }
        let shown = match old.value() {
            // In Go a removed member that is no pointer has its zero value, and that is shown.
            Value::String(_) if !at.is_set() => Value::from(""),
            Value::Number(_) if !at.is_set() => Value::from(0),
            _ => at.value().clone(),
        };
        self.invalid_as(at, shown, "field is immutable");
    }

    /// Checks that a structure is the same as it was, and shows it as Go does.
    pub(crate) fn check_immutable_struct(
        &mut self,
        at: &Field<'_>,
        old: &Field<'_>,
        members: Members,
    ) {
        // Members tell how the Go type prints; comparing is done on the JSON.
        if !are_equal(at.value(), old.value()) {
            let shown = structs::shown(at.value(), members);
            self.invalid_struct(at, &shown, "field is immutable");
        }
    }

    /// Checks that a selector of labels is the same as it was.
    pub(crate) fn check_immutable_selector(&mut self, at: &Field<'_>, old: &Field<'_>) {
        if at.value() != old.value() {
            let shown = structs::selector(at.value());
            self.invalid_struct(at, &shown, "field is immutable");
        }
    }

    /// Checks that a list has at most so many items.
    pub(crate) fn check_count(&mut self, at: &Field<'_>, most: usize) {
        if at.list().len() > most {
            self.too_many(at, most);
        }
    }
}
