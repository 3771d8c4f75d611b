//! What is said: type, reason, note.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;

use super::text;

/// The most bytes of a reason and of an action; the API server refuses longer ones.
const LIMIT: usize = 128;
/// The most bytes of a note; the API server refuses longer ones.
const NOTE_LIMIT: usize = 1024;
/// What stands before the note of events that are combined into one.
const COMBINED: &str = "(combined from similar events): ";

/// Something that happened to an object, for the people who look at it with `kubectl describe`.
///
/// A reason is one word in upper camel case that programs can match, of a small fixed set: `Created`,
/// `FailedCreate`. The note says the rest to people. Text the API server would refuse is made to fit: characters a
/// reason cannot have are left out, reason and action end after 128 bytes, a note after 1024, with `…`.
///
/// ```
/// use lariat_operator::Event;
///
/// let event = Event::warning("FailedCreate", "cannot create pod web-0: quota exceeded").action("Creating");
/// assert_eq!(event.reason(), "FailedCreate");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an event is not seen by anybody until it is published"]
pub struct Event {
    type_: EventType,
    reason: String,
    note: String,
    action: Option<String>,
    related: Option<ObjectReference>,
    annotations: BTreeMap<String, String>,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventType {
    Normal,
    Warning,
}

impl Event {
    /// Makes an event of what goes as it should.
    pub fn normal(reason: &str, note: impl Into<String>) -> Self {
        Self::new(EventType::Normal, reason, note.into())
    }

    /// Makes an event of what may need somebody's attention.
    pub fn warning(reason: &str, note: impl Into<String>) -> Self {
        Self::new(EventType::Warning, reason, note.into())
    }

    fn new(type_: EventType, reason: &str, note: String) -> Self {
        let reason = Some(text::word(reason, LIMIT)).filter(|word| !word.is_empty());
        Self {
            type_,
            reason: reason.unwrap_or_else(|| "Unknown".to_owned()),
            note: text::cut(note, NOTE_LIMIT),
            action: None,
            related: None,
            annotations: BTreeMap::new(),
        }
    }

    /// Says what was being done, as a word like a reason: `Creating` (default: nothing is said; empty means so too).
    pub fn action(self, action: &str) -> Self {
        let action = Some(text::word(action, LIMIT)).filter(|word| !word.is_empty());
        Self { action, ..self }
    }

    /// Names another object that took part (default: none).
    pub fn related(self, related: ObjectReference) -> Self {
        let related = Some(related);
        Self { related, ..self }
    }

    /// Adds an annotation to the Event's metadata; can be said several times.
    ///
    /// The key must be valid, or the API server refuses the Event, which counts as failed.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Returns whether it is a warning.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        self.type_ == EventType::Warning
    }

    /// Returns the reason, as it is written.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the note, as it is written.
    #[must_use]
    pub fn note(&self) -> &str {
        &self.note
    }

    pub(super) fn type_(&self) -> &'static str {
        match self.type_ {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }

    pub(super) fn action_name(&self) -> Option<&str> {
        self.action.as_deref()
    }

    pub(super) fn related_object(&self) -> Option<&ObjectReference> {
        self.related.as_ref()
    }

    pub(super) fn annotations(&self) -> &BTreeMap<String, String> {
        &self.annotations
    }

    /// Makes the event that stands for several; it has what they have in common, and the note of the latest.
    pub(super) fn combined(self) -> Self {
        Self {
            note: text::cut(format!("{COMBINED}{}", self.note), NOTE_LIMIT),
            related: None,
            annotations: BTreeMap::new(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_would_refuse_is_made_to_fit() {
        let event = Event::normal("", "é".repeat(600)).action(&"a".repeat(200));
        assert_eq!(event.reason(), "Unknown");
        assert_eq!(
            event.note().len(),
            1023,
            "512 characters of 2 bytes less one, and …"
        );
        assert!(event.note().ends_with("é…"));
        assert_eq!(event.action_name().map(str::len), Some(128));
        let combined = event.combined();
        assert!(
            combined
                .note()
                .starts_with("(combined from similar events): é")
        );
        assert!(combined.note().len() <= 1024);
        assert_eq!(Event::normal("A", "").action("").action_name(), None);
    }
}
