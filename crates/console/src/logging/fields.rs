//! The fields of spans and events.

use std::fmt;

use serde_json::Value;
use tracing::Metadata;
use tracing::field::{Field, Visit};

/// The fields of a span or an event, in the order in which they were recorded.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    /// Returns the value of a field.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let mut fields = self.0.iter();
        fields
            .find(|(each, _)| *each == name)
            .map(|(_, value)| value)
    }

    /// Returns the value of a field if it is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// Sets a field, replacing an earlier value.
    fn set(&mut self, field: &Field, value: Value) {
        let name = field.name();
        match self.0.iter_mut().find(|(each, _)| *each == name) {
            Some((_, before)) => *before = value,
            None => self.0.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has neither NaN nor infinities, so they become text.
        let number = serde_json::Number::from_f64(value);
        self.set(
            field,
            number.map_or_else(|| value.to_string().into(), Value::Number),
        );
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}").into());
    }
}

/// A span around an event.
pub(super) struct Scope<'a> {
    pub(super) metadata: &'static Metadata<'static>,
    pub(super) fields: &'a Fields,
}

impl Scope<'_> {
    /// Returns whether Lariat made the span.
    pub(super) fn is_ours(&self) -> bool {
        self.metadata.target().starts_with("lariat")
    }
}

/// An event with its spans, from which a line is made.
pub(super) struct Record<'a> {
    pub(super) metadata: &'static Metadata<'static>,
    pub(super) fields: &'a Fields,
    /// The spans around the event, the innermost first.
    pub(super) spans: &'a [Scope<'a>],
}

/// The object and the handler of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct About<'a> {
    pub(super) kind: Option<&'a str>,
    pub(super) key: Option<&'a str>,
    pub(super) handler: Option<&'a str>,
}

impl<'a> Record<'a> {
    /// Returns the object and the handler of the event, or else of the spans around it.
    ///
    /// Kind and key are taken from the same place. The event may be about another object than the span around it, such
    /// as one that the handler writes, and the span's kind must not be combined with the event's key.
    pub(super) fn about(&self) -> About<'a> {
        // A program's own spans may have fields of these names with another meaning.
        let ours = self.spans.iter().filter(|span| span.is_ours());
        let places = || std::iter::once(self.fields).chain(ours.clone().map(|span| span.fields));
        let of = |fields: &'a Fields| (fields.text("kind"), fields.text("key"));
        let (kind, key) = places()
            .map(of)
            .find(|(kind, key)| kind.is_some() || key.is_some())
            .unwrap_or_default();
        let handler = places().find_map(|fields| fields.text("handler"));
        About { kind, key, handler }
    }
}
