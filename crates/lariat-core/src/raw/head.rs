//! The fast path: type and metadata of an object in the API server's member order.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::borrowed::Metadata;
use crate::{JsonCursor, Unclear};

/// The beginning of an object, up to the end of its metadata.
///
/// It contains what a parser would find; a text that it does not understand is left to a parser. It checks that no
/// second `metadata` follows, and no `apiVersion` or `kind` that was missing before the metadata. Apart from that, the
/// rest may be anything that ends with a brace.
pub(super) struct Head<'a> {
    pub(super) parts: Parts<'a>,
    pub(super) metadata: Metadata<'a>,
}

/// Members of an object as they are written.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) api_version: Option<&'a [u8]>,
    pub(super) kind: Option<&'a [u8]>,
    pub(super) metadata: &'a [u8],
}

impl<'a> Head<'a> {
    /// Reads an object without white space around it.
    pub(super) fn read(json: &'a [u8]) -> Result<Self, Unclear> {
        let mut cursor = JsonCursor::new(json);
        let head = Self::begin(&mut cursor)?;
        check_rest(json, cursor, head.parts.has_type())?;
        Ok(head)
    }

    /// Reads a whole object within a text; returns its head and all of its bytes.
    pub(super) fn read_within(cursor: &mut JsonCursor<'a>) -> Result<(Self, &'a [u8]), Unclear> {
        cursor.peek()?;
        let start = cursor.position();
        let head = Self::begin(cursor)?;
        pass_content(cursor, head.parts.has_type())?;
        Ok((head, cursor.since(start)))
    }

    /// Reads an object up to the end of its metadata.
    fn begin(cursor: &mut JsonCursor<'a>) -> Result<Self, Unclear> {
        let start = cursor.position();
        cursor.enter_object()?;
        let (mut api_version, mut kind) = (None, None);
        loop {
            match cursor.next_member()?.ok_or(Unclear)? {
                b"apiVersion" => once(&mut api_version, type_text(cursor)?)?,
                b"kind" => once(&mut kind, type_text(cursor)?)?,
                // Members after the metadata are left to `check_rest`.
                b"metadata" => break,
                name => other(name, cursor)?,
            }
        }
        cursor.peek()?;
        let metadata_start = cursor.position();
        let metadata = read_metadata(cursor)?;
        // The cursor does not check strings for control characters, which are an error in JSON.
        if has_control_characters(cursor.since(start)) {
            return Err(Unclear);
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
    fn has_type(&self) -> bool {
        self.api_version.is_some() && self.kind.is_some()
    }
}

fn read_metadata<'a>(cursor: &mut JsonCursor<'a>) -> Result<Metadata<'a>, Unclear> {
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
    let text = |value: Option<&'a [u8]>| match present(value) {
        Some(json) => plain_text(json).map(Cow::Borrowed),
        None => Ok(Cow::Borrowed("")),
    };
    let deleted = present(read.deletion_timestamp)
        .map(plain_text)
        .transpose()?;
    Ok(Metadata {
        name: plain_text(read.name.ok_or(Unclear)?).map(Cow::Borrowed)?,
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
fn once<'a>(place: &mut Option<&'a [u8]>, value: &'a [u8]) -> Result<(), Unclear> {
    place.replace(value).map_or(Ok(()), |_| Err(Unclear))
}

/// Skips a member that is not read. Its name must not have escapes, which could hide one that is.
fn other(name: &[u8], cursor: &mut JsonCursor<'_>) -> Result<(), Unclear> {
    if name.contains(&b'\\') {
        return Err(Unclear);
    }
    cursor.skip_value().map(drop)
}

/// Reads `apiVersion` or `kind`: a string or a null.
fn type_text<'a>(cursor: &mut JsonCursor<'a>) -> Result<&'a [u8], Unclear> {
    let json = cursor.skip_value()?;
    if json != b"null" {
        plain_text(json)?;
    }
    Ok(json)
}

/// Returns a member unless it is null, which counts as absent.
fn present(value: Option<&[u8]>) -> Option<&[u8]> {
    value.filter(|json| *json != b"null")
}

/// Reads a string without escapes.
fn plain_text(json: &[u8]) -> Result<&str, Unclear> {
    let text = json
        .strip_prefix(b"\"")
        .ok_or(Unclear)?
        .strip_suffix(b"\"")
        .ok_or(Unclear)?;
    if text.contains(&b'\\') {
        return Err(Unclear);
    }
    std::str::from_utf8(text).map_err(|_| Unclear)
}

/// Reads an integer.
fn integer(json: &[u8]) -> Result<i64, Unclear> {
    // A parser reads this as a floating-point number.
    if json == b"-0" {
        return Err(Unclear);
    }
    let text = std::str::from_utf8(json).map_err(|_| Unclear)?;
    text.parse().map_err(|_| Unclear)
}

/// Returns whether there are control characters. Without an early end, it compiles to vector instructions.
fn has_control_characters(json: &[u8]) -> bool {
    json.iter().fold(false, |has, byte| has | (*byte < b' '))
}

/// Checks that content or the end follows the metadata.
fn check_rest(json: &[u8], mut cursor: JsonCursor<'_>, has_type: bool) -> Result<(), Unclear> {
    let Some(first) = cursor.next_member()? else {
        return cursor.end();
    };
    // The end is checked although the content is not read: a text that was cut off must not pass.
    if counts(first, has_type) || !json.ends_with(b"}") {
        return Err(Unclear);
    }
    let rest = &json[cursor.position()..];
    if !names_what_counts(rest, has_type) {
        return Ok(());
    }
    // The words occur, perhaps deeper inside, as in the pod templates of workloads, or in a string.
    cursor.skip_value()?;
    pass_content(&mut cursor, has_type)?;
    cursor.end()
}

/// Skips the rest of an object, in which no member that counts may occur.
fn pass_content(cursor: &mut JsonCursor<'_>, has_type: bool) -> Result<(), Unclear> {
    while let Some(name) = cursor.next_member()? {
        if counts(name, has_type) {
            return Err(Unclear);
        }
        cursor.skip_value()?;
    }
    Ok(())
}

/// Returns whether a member after the metadata would have to be read.
///
/// With escapes, its name may be one that counts.
fn counts(name: &[u8], has_type: bool) -> bool {
    match name {
        b"metadata" => true,
        b"apiVersion" | b"kind" => !has_type,
        name => name.contains(&b'\\'),
    }
}

/// Returns whether a member that counts may occur in a text.
///
/// The search costs a hundredth of a parser's pass.
fn names_what_counts(json: &[u8], has_type: bool) -> bool {
    // Only `\u` can stand for letters of the names; the other escapes cannot.
    static ALWAYS: LazyLock<[Finder<'_>; 2]> =
        LazyLock::new(|| [r#""metadata""#, r"\u"].map(Finder::new));
    static OF_THE_TYPE: LazyLock<[Finder<'_>; 2]> =
        LazyLock::new(|| [r#""kind""#, r#""apiVersion""#].map(Finder::new));
    let finds = |finder: &Finder<'_>| finder.find(json).is_some();
    ALWAYS.iter().any(finds) || (!has_type && OF_THE_TYPE.iter().any(finds))
}
