//! The parts of an object that serde reads, borrowed from the JSON.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::object::OwnerRef;
use crate::intern::Texts;
use crate::{Labels, StrictObject, Uid};

/// The top level of an object; `spec`, `status` and the rest are skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope<'a> {
    /// `apiVersion`: `None` if it is absent, `Some(None)` if it is null.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) api_version: Option<Option<Text<'a>>>,
    /// `kind`, likewise.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) kind: Option<Option<Text<'a>>>,
    /// `metadata`.
    #[serde(borrow)]
    pub(super) metadata: StrictObject<Metadata<'a>>,
}

/// An object of which only namespace and name are read.
#[derive(Deserialize)]
pub(super) struct Named<'a> {
    /// `metadata`.
    #[serde(borrow)]
    pub(super) metadata: StrictObject<Name<'a>>,
}

/// Name and namespace of an object.
#[derive(Deserialize)]
pub(super) struct Name<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) namespace: Cow<'a, str>,
}

/// The metadata of an object.
///
/// The members that need an allocation stay JSON; they are parsed only if the object is new.
#[derive(Deserialize)]
#[cfg_attr(test, derive(Debug, PartialEq))]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) namespace: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) uid: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) resource_version: Cow<'a, str>,
    #[serde(default)]
    pub(super) generation: Option<i64>,
    #[serde(default, rename = "deletionTimestamp", deserialize_with = "is_text")]
    pub(super) is_deleting: bool,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) labels: Option<&'a [u8]>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) owner_references: Option<&'a [u8]>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) finalizers: Option<&'a [u8]>,
    #[serde(borrow, default, deserialize_with = "raw")]
    pub(super) managed_fields: Option<&'a [u8]>,
}

/// The members of a `PartialObjectMetadata`, as they are written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Partial<'a> {
    /// `apiVersion`: `None` if it is absent; a null is present.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) api_version: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) metadata: &'a RawValue,
}

/// An owner reference.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Owner<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    api_version: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    kind: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    name: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    uid: Cow<'a, str>,
    #[serde(default)]
    controller: Option<bool>,
}

impl Owner<'_> {
    /// Stores the owner reference with interned texts.
    pub(super) fn intern(&self, texts: &mut Texts) -> OwnerRef {
        OwnerRef {
            api_version: texts.intern(&self.api_version),
            kind: texts.intern(&self.kind),
            name: texts.intern(&self.name),
            uid: Uid::new(&self.uid),
            controller: self.controller.unwrap_or(false),
        }
    }
}

/// Reads a member that is present, even if it is null.
///
/// serde alone reads both an absent and a null member as `None`.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads a string; null is the empty string, as in Go.
fn text<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'a, str>, D::Error> {
    let text: Option<Text<'a>> = Option::deserialize(deserializer)?;
    Ok(text.map_or(Cow::Borrowed(""), |text| text.0))
}

/// Returns whether there is a string; null counts as absent, as in Go.
fn is_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let text: Option<Text<'de>> = Option::deserialize(deserializer)?;
    Ok(text.is_some())
}

/// Skips a value and returns its JSON; null counts as absent, as in Go.
fn raw<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a [u8]>, D::Error> {
    let value: Option<&'a RawValue> = Option::deserialize(deserializer)?;
    Ok(value.map(|value| value.get().as_bytes()))
}

/// Labels that are deserialized from a JSON object of strings.
pub(super) struct PackedLabels(pub(super) Labels);

impl<'de> Deserialize<'de> for PackedLabels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Pairs).map(Self)
    }
}

/// Visits the labels of a JSON object.
struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Labels;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of labels")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
        // `FromIterator` cannot fail, so the first error ends the iteration and is returned afterwards.
        let mut failure = None;
        let pairs = std::iter::from_fn(|| {
            map.next_entry::<Text<'de>, Text<'de>>()
                .unwrap_or_else(|error| {
                    failure = Some(error);
                    None
                })
        });
        let labels = pairs.map(|(key, value)| (key.0, value.0)).collect();
        failure.map_or(Ok(labels), Err)
    }

    fn visit_unit<E>(self) -> Result<Labels, E> {
        Ok(Labels::default())
    }
}

/// A string that is borrowed from the input unless it has escapes.
///
/// A bare `Cow` inside an `Option` or a `Vec` is always owned, because serde borrows only for direct fields.
#[derive(Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);
