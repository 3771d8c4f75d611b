//! The scan of an object: its identity and version, without copying.

use std::borrow::Cow;
use std::ops::Range;

use super::borrowed::{Envelope, Metadata, Name, Named, Partial};
use super::head::{Head, Parts};
use super::interner::Interner;
use super::object::{ObjectMetadata, RawObject, RawObjectError};
use super::uid::Uid;
use crate::{Gvk, JsonCursor, ObjectKey, ResourceVersion, StrictObject, UnexpectedJson};

/// The result of one pass over an object's metadata, which copies nothing.
///
/// Most objects of a list are already in the cache, and for these the scan is all that is needed. The pass ends after
/// the metadata if they precede the content, as API servers write them; see [`new`](Self::new).
///
/// ```
/// use lariat_core::{ResourceVersion, Scan, Uid};
/// use lariat::Gvk;
///
/// let json = br#"{"metadata":{"name":"web-0","uid":"u-1","resourceVersion":"7"},"spec":{}}"#;
/// let scan = Scan::new(json, &Gvk::new("", "v1", "Pod"))?;
/// assert_eq!(scan.name(), "web-0");
/// assert!(scan.is_state(&Uid::new("u-1"), &ResourceVersion::new("7")), "it is in the cache");
/// # Ok::<(), lariat::core::RawObjectError>(())
/// ```
pub struct Scan<'a> {
    /// The JSON of the object.
    pub(super) json: &'a [u8],
    /// The metadata.
    pub(super) metadata: Metadata<'a>,
    /// Which of `apiVersion` and `kind` are missing.
    pub(super) missing: MissingType,
    /// Whether the object is a `PartialObjectMetadata`.
    pub(super) partial: bool,
    /// Type and metadata as written; `None` unless the fast path found them.
    pub(super) parts: Option<Parts<'a>>,
    /// The key, if the caller has one to share.
    pub(super) key: Option<ObjectKey>,
}

/// Whether `metadata.managedFields` is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManagedFields {
    /// Removes `metadata.managedFields`: it is large, and few controllers read it.
    #[default]
    Cut,
    /// Keeps `metadata.managedFields`.
    Keep,
}

impl<'a> Scan<'a> {
    /// Reads type and metadata of an object.
    ///
    /// In valid JSON it finds what a parser of the whole text finds, wherever `metadata`, `kind` and `apiVersion` are,
    /// and it rejects an object with two `metadata`. Three checks are left to the decoder of the content: that the text
    /// after the metadata is JSON (it must end with a brace), that `apiVersion` and `kind` are not repeated after the
    /// metadata, and that skipped strings are UTF-8. So an object with damaged content has a key and metadata but
    /// cannot be decoded.
    ///
    /// # Errors
    ///
    /// If the text is not a JSON object, or has no `metadata.name`.
    pub fn new(json: &'a [u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        let json = json.trim_ascii();
        let scan = match Head::read(json) {
            Ok(head) => Self::of_head(json, head),
            // The parser either reads the text or reports what is wrong with it.
            Err(UnexpectedJson) => Self::parse(json, gvk)?,
        };
        scan.named(gvk)
    }

    /// Reads an object within a text, such as an item of a list, and moves past it.
    ///
    /// The scan finds what [`new`](Self::new) finds, and checks the syntax of the content as far as a cursor does.
    ///
    /// # Errors
    ///
    /// If there is no object at the cursor, or if the object needs [`new`](Self::new) to be read or to report the
    /// error.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat_core::{JsonCursor, Scan};
    ///
    /// let mut cursor = JsonCursor::new(br#"[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]"#);
    /// cursor.enter_list()?;
    /// let mut names = Vec::new();
    /// while cursor.next_item()? {
    ///     names.push(Scan::next(&mut cursor)?.name().to_owned());
    /// }
    /// assert_eq!(names, ["a", "b"]);
    /// # Ok::<(), lariat_core::UnexpectedJson>(())
    /// ```
    pub fn next(cursor: &mut JsonCursor<'a>) -> Result<Self, UnexpectedJson> {
        let (head, json) = Head::read_within(cursor)?;
        let scan = Self::of_head(json, head);
        if scan.metadata.name.is_empty() {
            return Err(UnexpectedJson);
        }
        Ok(scan)
    }

    /// Creates the result of the fast path.
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

    /// Reads an object with a parser of the whole text, which detects damaged content.
    ///
    /// # Errors
    ///
    /// If the text is not a JSON object, or has no `metadata.name`.
    pub fn whole(json: &'a [u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        let scan = Self::parse(json.trim_ascii(), gvk)?;
        scan.named(gvk)
    }

    /// Refuses an object that [names another kind](Self::is_of_another_kind).
    ///
    /// # Errors
    ///
    /// If the object names another kind than `gvk`.
    pub fn of_kind(self, gvk: &Gvk) -> Result<Self, RawObjectError> {
        if self.is_of_another_kind(gvk) {
            return Err(RawObjectError::new(gvk, "it is of another kind"));
        }
        Ok(self)
    }

    /// Checks that the object has a name.
    fn named(self, gvk: &Gvk) -> Result<Self, RawObjectError> {
        if self.metadata.name.is_empty() {
            return Err(RawObjectError::new(gvk, "metadata.name is empty"));
        }
        Ok(self)
    }

    /// Reads type and metadata with serde.
    fn parse(json: &'a [u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        // Derived `Deserialize` would read an array as a struct, by position.
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

    /// Returns whether the object names another kind than `gvk`.
    ///
    /// An object without `kind`, a `PartialObjectMetadata`, and JSON of an unusual form name none.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::Gvk;
    /// use lariat_core::Scan;
    ///
    /// let pod = Gvk::new("", "v1", "Pod");
    /// let scan = Scan::new(br#"{"kind":"Secret","metadata":{"name":"a"}}"#, &pod)?;
    /// assert!(scan.is_of_another_kind(&pod));
    /// # Ok::<(), lariat::core::RawObjectError>(())
    /// ```
    #[must_use]
    pub fn is_of_another_kind(&self, gvk: &Gvk) -> bool {
        let named = self.parts.as_ref().and_then(|parts| parts.kind);
        let name = named.and_then(|json| json.strip_prefix(b"\"")?.strip_suffix(b"\""));
        !self.partial && name.is_some_and(|name| name != gvk.kind().as_bytes())
    }

    /// Returns the JSON text of the object.
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

    /// Sets the key that the object will share, to save an allocation.
    ///
    /// The key of another object is ignored.
    #[must_use]
    pub fn with_key(self, key: Option<ObjectKey>) -> Self {
        // A wrong key would store the object under the name of another one.
        let key = key.filter(|key| {
            let namespace = key.namespace().unwrap_or_default();
            (namespace, key.name()) == (self.namespace(), self.name())
        });
        Self { key, ..self }
    }

    /// Returns whether this is a `PartialObjectMetadata`, which has no content.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Returns whether this is the state with the given uid and version.
    ///
    /// Always `false` if the version is empty.
    #[must_use]
    pub fn is_state(&self, uid: &Uid, version: &ResourceVersion) -> bool {
        // Objects without a version, as in tests, must not all count as the same state.
        !version.is_empty()
            && *uid == Uid::new(&self.metadata.uid)
            && *version == ResourceVersion::new(&self.metadata.resource_version)
    }

    /// Creates the object, with one copy of its JSON.
    ///
    /// # Errors
    ///
    /// If labels, owner references or finalizers have the wrong type.
    pub fn into_object(
        self,
        gvk: &Gvk,
        interner: &mut Interner,
        managed_fields: ManagedFields,
    ) -> Result<RawObject, RawObjectError> {
        let metadata = self.compact(gvk, interner)?;
        // The managed fields are cut out of the text rather than removed from a parsed value, which would change the
        // order of fields.
        let cut = self.cut_of(self.json, managed_fields);
        let json = self.missing.copy_without(gvk, self.json, cut);
        Ok(RawObject { metadata, json })
    }

    /// Creates an object of `apiVersion`, `kind` and `metadata` only.
    ///
    /// # Errors
    ///
    /// If labels, owner references or finalizers have the wrong type.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::Gvk;
    /// use lariat_core::{Interner, ManagedFields, Scan};
    ///
    /// let gvk = Gvk::new("", "v1", "Pod");
    /// let scan = Scan::new(br#"{"metadata":{"name":"web-0"},"spec":{"nodeName":"n"}}"#, &gvk)?;
    /// let object = scan.into_metadata(&gvk, &mut Interner::new(), ManagedFields::Cut)?;
    /// assert_eq!(object.json(), br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0"}}"#);
    /// # Ok::<(), lariat::core::RawObjectError>(())
    /// ```
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

    /// Returns the range of the managed fields within a part of the JSON.
    ///
    /// The range is empty if they are kept.
    fn cut_of(&self, part: &[u8], managed_fields: ManagedFields) -> Range<usize> {
        match (managed_fields, self.metadata.managed_fields) {
            (ManagedFields::Cut, Some(value)) => {
                member_range(part, value, "managedFields").unwrap_or(0..0)
            }
            _ => 0..0,
        }
    }

    /// Creates the compact metadata; parses the members that need allocations.
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

/// Finds type and metadata as written, for objects beyond the fast path.
fn read_parts(json: &[u8]) -> Result<Parts<'_>, serde_json::Error> {
    let StrictObject(parts) = serde_json::from_slice::<StrictObject<Partial<'_>>>(json)?;
    Ok(Parts {
        api_version: parts.api_version.map(|value| value.get().as_bytes()),
        kind: parts.kind.map(|value| value.get().as_bytes()),
        metadata: parts.metadata.get().as_bytes(),
    })
}

impl RawObject {
    /// Returns the key of an object even if other parts of the object are invalid.
    ///
    /// `None` if namespace or name are invalid, or if the text is not a JSON object.
    ///
    /// ```
    /// use lariat::{ObjectKey, RawObject};
    ///
    /// let json = br#"{"metadata":{"name":"web-0","namespace":"shop","labels":[1]}}"#;
    /// assert_eq!(RawObject::key_of(json), Some(ObjectKey::namespaced("shop", "web-0")));
    /// ```
    #[must_use]
    pub fn key_of(json: &[u8]) -> Option<ObjectKey> {
        let StrictObject(named) = serde_json::from_slice::<StrictObject<Named<'_>>>(json).ok()?;
        let StrictObject(Name { namespace, name }) = &named.metadata;
        (!name.is_empty()).then(|| ObjectKey::namespaced(namespace, name))
    }

    /// Parses an object of a kind from JSON.
    ///
    /// `apiVersion` and `kind` are added if they are missing, as in list items of built-in kinds, so that the object
    /// can be decoded as any type. Unknown fields and the order of fields are kept.
    ///
    /// The whole text must be JSON. Whether content and annotations have the types that a decoder expects is not
    /// checked. Caches check less of what a server sends; see [`Scan::new`].
    ///
    /// # Errors
    ///
    /// If the text is not a JSON object, or has no `metadata.name`.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::{Gvk, RawObject};
    ///
    /// let gvk = Gvk::new("", "v1", "Pod");
    /// let pod = RawObject::parse(br#"{"metadata":{"name":"web-0"}}"#, &gvk)?;
    /// assert_eq!(pod.key().name(), "web-0");
    /// assert!(RawObject::parse(b"{}", &gvk).is_err());
    /// # Ok::<(), lariat::core::RawObjectError>(())
    /// ```
    pub fn parse(json: &[u8], gvk: &Gvk) -> Result<Self, RawObjectError> {
        Scan::whole(json, gvk)?.into_object(gvk, &mut Interner::new(), ManagedFields::Cut)
    }

    /// Copies type and metadata of an object without its content.
    ///
    /// `None` unless type and metadata precede the content, as API servers write them.
    ///
    /// ```
    /// use lariat::RawObject;
    ///
    /// let json = br#"{"kind":"Pod","metadata":{"name":"web-0"},"spec":{}}"#;
    /// let metadata = RawObject::metadata_of(json).expect("it is in the usual order");
    /// assert_eq!(&*metadata, br#"{"kind":"Pod","metadata":{"name":"web-0"}}"#);
    /// ```
    #[must_use]
    pub fn metadata_of(json: &[u8]) -> Option<Box<[u8]>> {
        let parts = Head::read(json.trim_ascii()).ok()?.parts;
        Some(copy_metadata("{", parts, 0..0))
    }
}

/// Which of `apiVersion` and `kind` are missing.
///
/// List items of built-in kinds have neither.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) struct MissingType {
    /// Whether `apiVersion` is missing.
    pub(super) api_version: bool,
    /// Whether `kind` is missing.
    pub(super) kind: bool,
}

impl MissingType {
    /// Returns the opening brace and the missing members.
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

    /// Copies a JSON object without the bytes of `cut`, and adds the missing members.
    fn copy_without(self, gvk: &Gvk, json: &[u8], cut: Range<usize>) -> Box<[u8]> {
        let head = self.head(gvk);
        // Position 0 is the opening brace, which `head` contains.
        let (before, behind) = (&json[1..cut.start.max(1)], &json[cut.end.max(1)..]);
        // With the exact capacity `into_boxed_slice` does not copy again.
        let mut copy = Vec::with_capacity(head.len() + before.len() + behind.len());
        copy.extend_from_slice(head.as_bytes());
        copy.extend_from_slice(before);
        copy.extend_from_slice(behind);
        copy.into_boxed_slice()
    }
}

/// Returns the range of the member `"name": value`, with one of the commas around it.
///
/// `value` must be a part of `json`. Returns `None` if the name is written with escapes; such a member is kept.
fn member_range(json: &[u8], value: &[u8], name: &str) -> Option<Range<usize>> {
    // The position follows from the addresses, because `value` is a subslice; this reads no memory.
    let start = (value.as_ptr() as usize).checked_sub(json.as_ptr() as usize)?;
    let end = start + value.len();
    let before = json
        .get(..start)?
        .trim_ascii_end()
        .strip_suffix(b":")?
        .trim_ascii_end()
        .strip_suffix(b"\"")?
        .strip_suffix(name.as_bytes())?
        .strip_suffix(b"\"")?;
    // With the comma before the member, or with the one after it if the member is the first.
    if let Some(head) = before.trim_ascii_end().strip_suffix(b",") {
        return Some(head.len()..end);
    }
    let after = json.get(end..)?;
    let tail = after.trim_ascii_start().strip_prefix(b",").unwrap_or(after);
    Some(before.len()..json.len() - tail.len())
}

/// The name of the metadata's member.
const METADATA: &[u8] = br#""metadata":"#;

/// Copies type and metadata after `head`, without the bytes of `cut`.
///
/// The range `cut` is relative to the metadata.
pub(super) fn copy_metadata(head: &str, parts: Parts<'_>, cut: Range<usize>) -> Box<[u8]> {
    let types = [
        (&br#""apiVersion":"#[..], parts.api_version),
        (&br#""kind":"#[..], parts.kind),
    ]
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
