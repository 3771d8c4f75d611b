//! An event, as a program publishes it: type, reason and note.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;

use super::text;

/// The maximum length of reasons and actions in bytes; the API server refuses more.
// `ReasonLengthLimit` and `ActionLengthLimit` of the API server's validation of Events.
const LIMIT: usize = 128;
/// The maximum length of notes in bytes; the API server refuses more.
// `NoteLengthLimit` there.
const NOTE_LIMIT: usize = 1024;
/// The prefix of the notes of combined events, as in client-go.
const COMBINED: &str = "(combined from similar events): ";

/// An event about an object, as `kubectl describe` shows it.
///
/// The reason is one CamelCase word out of a small fixed set, for programs to match, such as `Created` or
/// `FailedCreate`. The note is a sentence for people. Texts that the API server would refuse are adapted: invalid
/// characters of a reason are removed, reasons and actions are truncated to 128 bytes and notes to 1,024, with a final
/// `…`.
///
/// ```
/// use lariat::operator::Event;
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

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventType {
    Normal,
    Warning,
}

impl Event {
    /// Creates an event of type `Normal`.
    pub fn normal(reason: &str, note: impl Into<String>) -> Self {
        Self::new(EventType::Normal, reason, note.into())
    }

    /// Creates an event of type `Warning`.
    pub fn warning(reason: &str, note: impl Into<String>) -> Self {
        Self::new(EventType::Warning, reason, note.into())
    }

    fn new(type_: EventType, reason: &str, note: String) -> Self {
        let reason = Some(text::word(reason, LIMIT)).filter(|word| !word.is_empty());
        Self {
            type_,
            // The API server refuses an Event without a reason.
            reason: reason.unwrap_or_else(|| "Unknown".to_owned()),
            note: text::cut(note, NOTE_LIMIT),
            action: None,
            related: None,
            annotations: BTreeMap::new(),
        }
    }

    /// Sets the action as a word, such as `Creating` (default: none).
    ///
    /// An empty word means none.
    pub fn action(self, action: &str) -> Self {
        let action = Some(text::word(action, LIMIT)).filter(|word| !word.is_empty());
        Self { action, ..self }
    }

    /// Sets another object that is involved (default: none).
    pub fn related(self, related: ObjectReference) -> Self {
        let related = Some(related);
        Self { related, ..self }
    }

    /// Adds an annotation to the Event; can be called several times.
    ///
    /// If a key is invalid, the API server refuses the Event, which is counted as failed.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Returns whether it is of type `Warning`.
    ///
    /// ```
    /// use lariat::operator::Event;
    ///
    /// assert!(!Event::normal("Created", "created pod web-0").is_warning());
    /// assert!(Event::warning("FailedCreate", "quota exceeded").is_warning());
    /// ```
    #[must_use]
    pub fn is_warning(&self) -> bool {
        self.type_ == EventType::Warning
    }

    /// Returns the reason as it is written: one word, without invalid characters.
    ///
    /// ```
    /// use lariat::operator::Event;
    ///
    /// assert_eq!(Event::normal("scaled up!", "").reason(), "ScaledUp");
    /// ```
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the note as it is written, truncated to 1,024 bytes.
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

    /// Returns the combined event of several: what they have in common, with the newest note.
    pub(super) fn combined(self) -> Self {
        Self {
            note: text::cut(format!("{COMBINED}{}", self.note), NOTE_LIMIT),
            // These differ between the events that are combined.
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
