//! The fast path of a scan: type and metadata in the member order of API servers.
//!
//! It must find what serde finds, or return [`UnexpectedJson`], after which serde reads the text.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::borrowed::Metadata;
use crate::{JsonCursor, UnexpectedJson};

/// The beginning of an object, up to the end of its metadata.
///
/// Its contents equal those that a parser finds; a text that the fast path cannot read is left to a parser. It checks
/// that no second `metadata` follows, and no `apiVersion` or `kind` if these were missing before the metadata. Apart
/// from that, the rest may be anything that ends with a brace.
pub(super) struct Head<'a> {
    /// Type and metadata as written.
    pub(super) parts: Parts<'a>,
    /// The metadata as read.
    pub(super) metadata: Metadata<'a>,
}

/// Members of an object, as they are written.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    /// `apiVersion`, if present.
    pub(super) api_version: Option<&'a [u8]>,
    /// `kind`, if present.
    pub(super) kind: Option<&'a [u8]>,
    /// `metadata`.
    pub(super) metadata: &'a [u8],
}

impl<'a> Head<'a> {
    /// Reads an object without white space around it.
    pub(super) fn read(json: &'a [u8]) -> Result<Self, UnexpectedJson> {
        // The cursor passes the metadata, and only the rest of the text remains unread.
        let mut cursor = JsonCursor::new(json);
        let head = Self::begin(&mut cursor)?;
        check_rest(json, cursor, head.parts.has_type())?;
        Ok(head)
    }

    /// Reads an object within a text and moves past it; returns its head and its JSON.
    pub(super) fn read_within(
        cursor: &mut JsonCursor<'a>,
    ) -> Result<(Self, &'a [u8]), UnexpectedJson> {
        cursor.peek()?;
        let start = cursor.position();
        // Items of a list are read to their end here, because the next item begins there.
        let head = Self::begin(cursor)?;
        pass_content(cursor, head.parts.has_type())?;
        Ok((head, cursor.since(start)))
    }

    /// Reads an object up to the end of its metadata.
    fn begin(cursor: &mut JsonCursor<'a>) -> Result<Self, UnexpectedJson> {
        let start = cursor.position();
        cursor.enter_object()?;
        let (mut api_version, mut kind) = (None, None);
        loop {
            match cursor.next_member()?.ok_or(UnexpectedJson)? {
                b"apiVersion" => once(&mut api_version, type_text(cursor)?)?,
                b"kind" => once(&mut kind, type_text(cursor)?)?,
                // The members after the metadata are checked by the callers.
                b"metadata" => break,
                name => other(name, cursor)?,
            }
        }
        cursor.peek()?;
        // After `peek`, so that white space is not part of the value.
        let metadata_start = cursor.position();
        let metadata = read_metadata(cursor)?;
        // JSON forbids control characters in strings, and the cursor does not check for them.
        if has_control_characters(cursor.since(start)) {
            return Err(UnexpectedJson);
        }
        let parts = Parts {
            api_version,
            kind,
            metadata: cursor.since(metadata_start),
        };
        Ok(Self { parts, metadata })
    }
}

impl Parts<'_> {
    /// Returns whether both `apiVersion` and `kind` are present.
    fn has_type(&self) -> bool {
        self.api_version.is_some() && self.kind.is_some()
    }
}

/// Reads the metadata at the cursor.
fn read_metadata<'a>(cursor: &mut JsonCursor<'a>) -> Result<Metadata<'a>, UnexpectedJson> {
    let mut read = Members::default();
    cursor.enter_object()?;
    while let Some(name) = cursor.next_member()? {
        let place = match name {
            b"name" => &mut read.name,
            b"namespace" => &mut read.namespace,
            b"uid" => &mut read.uid,
            b"resourceVersion" => &mut read.resource_version,
            b"generation" => &mut read.generation,
            b"deletionTimestamp" => &mut read.deletion_timestamp,
            b"labels" => &mut read.labels,
            b"ownerReferences" => &mut read.owner_references,
            b"finalizers" => &mut read.finalizers,
            b"managedFields" => &mut read.managed_fields,
            name => {
                other(name, cursor)?;
                continue;
            }
        };
        once(place, cursor.skip_value()?)?;
    }
    // As in Go, a null or absent string is the empty one.
    let text = |value: Option<&'a [u8]>| match present(value) {
        Some(json) => plain_text(json).map(Cow::Borrowed),
        None => Ok(Cow::Borrowed("")),
    };
    let deleted = present(read.deletion_timestamp)
        .map(plain_text)
        .transpose()?;
    Ok(Metadata {
        name: plain_text(read.name.ok_or(UnexpectedJson)?).map(Cow::Borrowed)?,
        namespace: text(read.namespace)?,
        uid: text(read.uid)?,
        resource_version: text(read.resource_version)?,
        generation: present(read.generation).map(integer).transpose()?,
        is_deleting: deleted.is_some(),
        labels: present(read.labels),
        owner_references: present(read.owner_references),
        finalizers: present(read.finalizers),
        managed_fields: present(read.managed_fields),
    })
}

/// The members of the metadata that are read, as they are written.
#[derive(Default)]
struct Members<'a> {
    name: Option<&'a [u8]>,
    namespace: Option<&'a [u8]>,
    uid: Option<&'a [u8]>,
    resource_version: Option<&'a [u8]>,
    generation: Option<&'a [u8]>,
    deletion_timestamp: Option<&'a [u8]>,
    labels: Option<&'a [u8]>,
    owner_references: Option<&'a [u8]>,
    finalizers: Option<&'a [u8]>,
    managed_fields: Option<&'a [u8]>,
}

/// Stores the value of a member that may occur only once.
///
/// A duplicate is left to serde, which rejects it.
fn once<'a>(place: &mut Option<&'a [u8]>, value: &'a [u8]) -> Result<(), UnexpectedJson> {
    place.replace(value).map_or(Ok(()), |_| Err(UnexpectedJson))
}

/// Skips a member that is not needed.
///
/// Its name must not contain escapes, which could hide a name that is needed.
fn other(name: &[u8], cursor: &mut JsonCursor<'_>) -> Result<(), UnexpectedJson> {
    if name.contains(&b'\\') {
        return Err(UnexpectedJson);
    }
    cursor.skip_value().map(drop)
}

/// Reads `apiVersion` or `kind`: a string or null.
fn type_text<'a>(cursor: &mut JsonCursor<'a>) -> Result<&'a [u8], UnexpectedJson> {
    let json = cursor.skip_value()?;
    if json != b"null" {
        plain_text(json)?;
    }
    Ok(json)
}

/// Returns a value unless it is null, which counts as absent.
fn present(value: Option<&[u8]>) -> Option<&[u8]> {
    value.filter(|json| *json != b"null")
}

/// Reads a string without escapes.
fn plain_text(json: &[u8]) -> Result<&str, UnexpectedJson> {
    let text = json
        .strip_prefix(b"\"")
        .ok_or(UnexpectedJson)?
        .strip_suffix(b"\"")
        .ok_or(UnexpectedJson)?;
    if text.contains(&b'\\') {
        return Err(UnexpectedJson);
    }
    std::str::from_utf8(text).map_err(|_| UnexpectedJson)
}

/// Reads an integer.
fn integer(json: &[u8]) -> Result<i64, UnexpectedJson> {
    // serde_json reads this as a floating-point number, and rejects it.
    if json == b"-0" {
        return Err(UnexpectedJson);
    }
    let text = std::str::from_utf8(json).map_err(|_| UnexpectedJson)?;
    text.parse().map_err(|_| UnexpectedJson)
}

/// Returns whether a text contains control characters.
///
/// It reads to the end, so that it compiles to vector instructions.
fn has_control_characters(json: &[u8]) -> bool {
    json.iter().fold(false, |has, byte| has | (*byte < b' '))
}

/// Checks the members after the metadata without reading them, if possible.
fn check_rest(
    json: &[u8],
    mut cursor: JsonCursor<'_>,
    has_type: bool,
) -> Result<(), UnexpectedJson> {
    let Some(first) = cursor.next_member()? else {
        return cursor.end();
    };
    // The content is not read, but its end is checked: a text that was cut off must not pass.
    if counts(first, has_type) || !json.ends_with(b"}") {
        return Err(UnexpectedJson);
    }
    let rest = &json[cursor.position()..];
    if !names_what_counts(rest, has_type) {
        return Ok(());
    }
    // The names occur, perhaps at a deeper level, as in the pod template of a workload, or within a string. Only
    // reading all members can tell.
    cursor.skip_value()?;
    pass_content(&mut cursor, has_type)?;
    cursor.end()
}

/// Skips the rest of an object; fails at a member that would have to be read.
fn pass_content(cursor: &mut JsonCursor<'_>, has_type: bool) -> Result<(), UnexpectedJson> {
    while let Some(name) = cursor.next_member()? {
        if counts(name, has_type) {
            return Err(UnexpectedJson);
        }
        cursor.skip_value()?;
    }
    Ok(())
}

/// Returns whether a member after the metadata would have to be read.
///
/// A name with escapes may be one that would.
fn counts(name: &[u8], has_type: bool) -> bool {
    match name {
        b"metadata" => true,
        b"apiVersion" | b"kind" => !has_type,
        name => name.contains(&b'\\'),
    }
}

/// Returns whether a text may contain a member that would have to be read.
///
/// The search costs a hundredth of a parser's pass.
fn names_what_counts(json: &[u8], has_type: bool) -> bool {
    // Of all escapes only `\u` can stand for letters of the names.
    static ALWAYS: LazyLock<[Finder<'_>; 2]> =
        LazyLock::new(|| [r#""metadata""#, r"\u"].map(Finder::new));
    static OF_THE_TYPE: LazyLock<[Finder<'_>; 2]> =
        LazyLock::new(|| [r#""kind""#, r#""apiVersion""#].map(Finder::new));
    let finds = |finder: &Finder<'_>| finder.find(json).is_some();
    ALWAYS.iter().any(finds) || (!has_type && OF_THE_TYPE.iter().any(finds))
}
