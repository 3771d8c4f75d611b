//! Copying an object's JSON without one of its members.

use std::borrow::Cow;
use std::ops::Range;

use super::head::Parts;
use crate::Gvk;

/// Finds the bytes of the member `"name": value`, with one of the commas around it.
///
/// `value` must be borrowed from `json`. Answers `None` where the name is written in a way this does
/// not recognise (with escapes); such a member is better kept than guessed at.
pub(super) fn member_range(json: &[u8], value: &[u8], name: &str) -> Option<Range<usize>> {
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

/// The members of an object's type that it does not have, as the items of a list of a built-in kind do not.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) struct MissingType {
    pub(super) api_version: bool,
    pub(super) kind: bool,
}

impl MissingType {
    /// Writes the beginning of an object, up to the members it has.
    pub(super) fn head(self, gvk: &Gvk) -> Cow<'static, str> {
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
}

/// Copies a JSON object without the bytes of `cut`, with what is missing of its type put in front.
pub(super) fn copy_without(
    json: &[u8],
    cut: Range<usize>,
    (missing, gvk): (MissingType, &Gvk),
) -> Box<[u8]> {
    let head = missing.head(gvk);
    let (before, behind) = (&json[1..cut.start.max(1)], &json[cut.end.max(1)..]);
    // Exactly as much as it becomes, or it would be copied once more.
    let mut copy = Vec::with_capacity(head.len() + before.len() + behind.len());
    copy.extend_from_slice(head.as_bytes());
    copy.extend_from_slice(before);
    copy.extend_from_slice(behind);
    copy.into_boxed_slice()
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
