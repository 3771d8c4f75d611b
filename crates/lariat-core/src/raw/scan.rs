//! The first look at an object: which state of which object is it?

use std::borrow::Cow;
use std::ops::Range;

use super::borrowed::{Envelope, Metadata, Name, Named, Partial};
use super::head::{Head, Parts};
use super::interner::Interner;
use super::object::{ObjectMetadata, RawObject, RawObjectError};
use super::uid::Uid;
use crate::{Gvk, JsonCursor, ObjectKey, ResourceVersion, StrictObject, Unclear};

/// What one borrowed pass over an object's metadata has found, before anything is copied.
///
/// Most objects of a list are known already; those cost this pass and nothing else. It ends with the metadata where they
/// are in front of the content, as API servers write them: see [`new`](Self::new).
pub struct Scan<'a> {
    pub(super) json: &'a [u8],
    pub(super) metadata: Metadata<'a>,
    /// The members of the type that the object does not have.
    pub(super) missing: MissingType,
    /// Whether it is a `PartialObjectMetadata`.
    pub(super) partial: bool,
    /// Where the metadata are, if the quick look has found them.
    pub(super) parts: Option<Parts<'a>>,
    /// The key, if somebody has it already.
    pub(super) key: Option<ObjectKey>,
}

/// What is kept of an object beside its content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManagedFields {
    /// `metadata.managedFields` is cut out: it is large, and few look at it.
    #[default]
    Cut,
    /// `metadata.managedFields` stays.
    Keep,
}

impl<'a> Scan<'a> {
    /// Looks at an object.
    ///
    /// Of a text that is JSON it finds what a parser finds that reads all of it, wherever `metadata`, `kind` and
    /// `apiVersion` are, and it refuses one with two `metadata`. What it does not look at is checked by whoever decodes it:
    /// that what follows the metadata is JSON, which has to end with a brace; whether a type in front of the metadata
    /// follows once more; and whether strings that are passed are UTF-8. An object whose content is damaged has its key
    /// and its metadata, and does not decode.
    ///
    /// # Errors
    ///
    /// The text is not a JSON object, or lacks what every object has: `metadata.name`.
    pub fn new(json: &'a [u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        let json = json.trim_ascii();
        let scan = match Head::read(json) {
            Ok(head) => Self::of_head(json, head),
            Err(Unclear) => Self::parse(json, gvk)?,
        };
        scan.named(gvk)
    }

    /// Looks at an object inside of a text, such as an item of a list, and moves behind it.
    ///
    /// It finds what [`new`](Self::new) finds, and that the content has the syntax of JSON as far as a cursor checks it.
    ///
    /// # Errors
    ///
    /// No object is here, or it is of a form of which only [`new`](Self::new) can find out what is in it or what is wrong with
    /// it.
    pub fn next(cursor: &mut JsonCursor<'a>) -> Result<Self, Unclear> {
        let (head, json) = Head::read_within(cursor)?;
        let scan = Self::of_head(json, head);
        if scan.metadata.name.is_empty() {
            return Err(Unclear);
        }
        Ok(scan)
    }

    fn of_head(json: &'a [u8], head: Head<'a>) -> Self {
        let Parts {
            api_version, kind, ..
        } = head.parts;
        Self {
            json,
            missing: MissingType {
                api_version: api_version.is_none(),
                kind: kind.is_none(),
            },
            partial: kind == Some(br#""PartialObjectMetadata""#),
            metadata: head.metadata,
            parts: Some(head.parts),
            key: None,
        }
    }

    /// Looks at all of an object with a parser, which notices damage of the content too.
    ///
    /// # Errors
    ///
    /// The text is not a JSON object, or lacks what every object has: `metadata.name`.
    pub fn whole(json: &'a [u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        let scan = Self::parse(json.trim_ascii(), gvk)?;
        scan.named(gvk)
    }

    fn named(self, gvk: &Gvk) -> Result<Self, RawObjectError> {
        if self.metadata.name.is_empty() {
            return Err(RawObjectError::new(gvk, "metadata.name is empty"));
        }
        Ok(self)
    }

    fn parse(json: &'a [u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        // serde would read an array as a struct by position.
        if json.first().is_some_and(|byte| *byte != b'{') {
            return Err(RawObjectError::new(gvk, "expected a JSON object"));
        }
        let envelope: Envelope<'_> =
            serde_json::from_slice(json).map_err(|error| RawObjectError::json(gvk, &error))?;
        let StrictObject(metadata) = envelope.metadata;
        let kind = envelope.kind.as_ref();
        Ok(Self {
            json,
            missing: MissingType {
                api_version: envelope.api_version.is_none(),
                kind: kind.is_none(),
            },
            partial: kind
                .and_then(Option::as_ref)
                .is_some_and(|kind| kind.0 == "PartialObjectMetadata"),
            metadata,
            parts: None,
            key: None,
        })
    }

    /// Returns the text of the object.
    #[must_use]
    pub fn json(&self) -> &'a [u8] {
        self.json
    }

    /// Returns the namespace, empty for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Gives the object a key that somebody has already, so that it shares the text. The key of another object is not
    /// used.
    #[must_use]
    pub fn with_key(self, key: Option<ObjectKey>) -> Self {
        let key = key.filter(|key| {
            let namespace = key.namespace().unwrap_or_default();
            (namespace, key.name()) == (self.namespace(), self.name())
        });
        Self { key, ..self }
    }

    /// Returns whether this is the metadata of an object rather than the object.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Returns whether this is the state somebody knows. States without a version are never known.
    #[must_use]
    pub fn is_state(&self, uid: &Uid, version: &ResourceVersion) -> bool {
        !version.is_empty()
            && *uid == Uid::new(&self.metadata.uid)
            && *version == ResourceVersion::new(&self.metadata.resource_version)
    }

    /// Makes the object, with one copy of its JSON.
    ///
    /// # Errors
    ///
    /// Labels, owners or finalizers are not what they should be.
    pub fn into_object(
        self,
        gvk: &Gvk,
        interner: &mut Interner,
        managed_fields: ManagedFields,
    ) -> Result<RawObject, RawObjectError> {
        let metadata = self.compact(gvk, interner)?;
        let cut = self.cut_of(self.json, managed_fields);
        let json = self.missing.copy_without(gvk, self.json, cut);
        Ok(RawObject { metadata, json })
    }

    /// Makes an object of the metadata alone: `apiVersion`, `kind` and `metadata`, copied as they are.
    ///
    /// # Errors
    ///
    /// Labels, owners or finalizers are not what they should be.
    pub fn into_metadata(
        self,
        gvk: &Gvk,
        interner: &mut Interner,
        managed_fields: ManagedFields,
    ) -> Result<RawObject, RawObjectError> {
        let metadata = self.compact(gvk, interner)?;
        let parts = match self.parts {
            Some(parts) => parts,
            None => read_parts(self.json).map_err(|error| RawObjectError::json(gvk, &error))?,
        };
        let cut = self.cut_of(parts.metadata, managed_fields);
        let json = copy_metadata(&self.missing.head(gvk), parts, cut);
        Ok(RawObject { metadata, json })
    }

    /// Finds the managed fields in a part of the object, if they are to be left out.
    fn cut_of(&self, part: &[u8], managed_fields: ManagedFields) -> Range<usize> {
        match (managed_fields, self.metadata.managed_fields) {
            (ManagedFields::Cut, Some(value)) => {
                member_range(part, value, "managedFields").unwrap_or(0..0)
            }
            _ => 0..0,
        }
    }

    fn compact(
        &self,
        gvk: &Gvk,
        interner: &mut Interner,
    ) -> Result<ObjectMetadata, RawObjectError> {
        let fails = |error: serde_json::Error| RawObjectError::json(gvk, &error);
        let (metadata, key) = (&self.metadata, self.key.clone());
        Ok(ObjectMetadata {
            key: key.unwrap_or_else(|| ObjectKey::namespaced(&metadata.namespace, &metadata.name)),
            uid: Uid::new(&metadata.uid),
            version: ResourceVersion::new(&metadata.resource_version),
            generation: metadata.generation,
            deleting: metadata.is_deleting,
            labels: interner.labels(metadata.labels).map_err(fails)?,
            owners: interner.owners(metadata.owner_references).map_err(fails)?,
            finalizers: interner.finalizers(metadata.finalizers).map_err(fails)?,
        })
    }
}

fn read_parts(json: &[u8]) -> Result<Parts<'_>, serde_json::Error> {
    let StrictObject(parts) = serde_json::from_slice::<StrictObject<Partial<'_>>>(json)?;
    Ok(Parts {
        api_version: parts.api_version.map(|value| value.get().as_bytes()),
        kind: parts.kind.map(|value| value.get().as_bytes()),
        metadata: parts.metadata.get().as_bytes(),
    })
}

impl RawObject {
    /// Finds the key of an object whatever else is wrong with it; `None` if that is.
    #[must_use]
    pub fn key_of(json: &[u8]) -> Option<ObjectKey> {
        let StrictObject(named) = serde_json::from_slice::<StrictObject<Named<'_>>>(json).ok()?;
        let StrictObject(Name { namespace, name }) = &named.metadata;
        (!name.is_empty()).then(|| ObjectKey::namespaced(namespace, name))
    }

    /// Reads an object of a kind from its JSON.
    ///
    /// Built-in kinds arrive without `apiVersion` and `kind` inside lists; both are put back, so that
    /// what is stored can be read as any view. Unknown fields and their order are kept.
    ///
    /// All of the text is checked to be JSON; whether content and annotations are of the types that a decoder wants is not.
    /// Caches look at less of what a server sends: see [`Scan::new`].
    ///
    /// # Errors
    ///
    /// The text is not a JSON object, or lacks what every object has: `metadata.name`.
    pub fn parse(json: &[u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        Scan::whole(json, gvk)?.into_object(gvk, &mut Interner::new(), ManagedFields::Cut)
    }

    /// Copies the type and the metadata of an object, without its content.
    ///
    /// `None` if it is not written as API servers do, with type and metadata in front of the content.
    #[must_use]
    pub fn metadata_of(json: &[u8]) -> Option<Box<[u8]>> {
        let parts = Head::read(json.trim_ascii()).ok()?.parts;
        Some(copy_metadata("{", parts, 0..0))
    }
}

/// The members of an object's type that it does not have, as the items of a list of a built-in kind do not.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) struct MissingType {
    pub(super) api_version: bool,
    pub(super) kind: bool,
}

impl MissingType {
    /// Writes the beginning of an object, up to the members it has.
    fn head(self, gvk: &Gvk) -> Cow<'static, str> {
        if !self.api_version && !self.kind {
            return Cow::Borrowed("{");
        }
        let mut head = String::from("{");
        if self.api_version {
            head.push_str(r#""apiVersion":""#);
            head.push_str(&gvk.api_version());
            head.push_str(r#"","#);
        }
        if self.kind {
            head.push_str(r#""kind":""#);
            head.push_str(gvk.kind());
            head.push_str(r#"","#);
        }
        Cow::Owned(head)
    }

    /// Copies a JSON object without the bytes of `cut`, with what is missing of its type put in front.
    fn copy_without(self, gvk: &Gvk, json: &[u8], cut: Range<usize>) -> Box<[u8]> {
        let head = self.head(gvk);
        let (before, behind) = (&json[1..cut.start.max(1)], &json[cut.end.max(1)..]);
        // Exactly as much as it becomes, or it would be copied once more.
        let mut copy = Vec::with_capacity(head.len() + before.len() + behind.len());
        copy.extend_from_slice(head.as_bytes());
        copy.extend_from_slice(before);
        copy.extend_from_slice(behind);
        copy.into_boxed_slice()
    }
}

/// Finds the bytes of the member `"name": value`, with one of the commas around it.
///
/// `value` must be borrowed from `json`. Answers `None` where the name is written in a way this does
/// not recognise (with escapes); such a member is better kept than guessed at.
fn member_range(json: &[u8], value: &[u8], name: &str) -> Option<Range<usize>> {
    let start = (value.as_ptr() as usize).checked_sub(json.as_ptr() as usize)?;
    let end = start + value.len();
    let before = json
        .get(..start)?
        .trim_ascii_end()
        .strip_suffix(b":")?
        .trim_ascii_end();
    let before = before
        .strip_suffix(b"\"")?
        .strip_suffix(name.as_bytes())?
        .strip_suffix(b"\"")?;
    if let Some(head) = before.trim_ascii_end().strip_suffix(b",") {
        return Some(head.len()..end);
    }
    let after = json.get(end..)?;
    let tail = after.trim_ascii_start().strip_prefix(b",").unwrap_or(after);
    Some(before.len()..json.len() - tail.len())
}

const METADATA: &[u8] = br#""metadata":"#;

/// Copies the type and the metadata of an object behind the beginning of one, the metadata without the bytes of `cut`.
pub(super) fn copy_metadata(head: &str, parts: Parts<'_>, cut: Range<usize>) -> Box<[u8]> {
    let types = [
        (&br#""apiVersion":"#[..], parts.api_version),
        (&br#""kind":"#[..], parts.kind),
    ];
    let types = types
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| [name, value, b","]))
        .flatten();
    let metadata = [
        METADATA,
        &parts.metadata[..cut.start],
        &parts.metadata[cut.end..],
        b"}",
    ];
    let pieces = types.chain(metadata);
    let length: usize = pieces.clone().map(<[u8]>::len).sum();
    let mut copy = Vec::with_capacity(head.len() + length);
    copy.extend_from_slice(head.as_bytes());
    pieces.for_each(|piece| copy.extend_from_slice(piece));
    copy.into_boxed_slice()
}

impl std::fmt::Debug for Scan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan")
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
