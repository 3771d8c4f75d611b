//! Copying an object's JSON without one of its members.

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
    fn head(self, gvk: &Gvk) -> String {
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
        head
    }
}

/// Copies a JSON object without the bytes of `cut`, with what is missing of its type put in front.
pub(super) fn copy_without(
    json: &[u8],
    cut: Range<usize>,
    (missing, gvk): (MissingType, &Gvk),
) -> Box<[u8]> {
    let head = missing.head(gvk);
    let mut copy = Vec::with_capacity(head.len() + json.len() - cut.len());
    copy.extend_from_slice(head.as_bytes());
    copy.extend_from_slice(&json[1..cut.start.max(1)]);
    copy.extend_from_slice(&json[cut.end.max(1)..]);
    copy.into_boxed_slice()
}

/// Copies the type and the metadata of an object, these without the bytes of `cut`.
pub(super) fn copy_metadata(parts: Parts<'_>, cut: Range<usize>, gvk: &Gvk) -> Box<[u8]> {
    let missing = MissingType {
        api_version: parts.api_version.is_none(),
        kind: parts.kind.is_none(),
    };
    let head = missing.head(gvk);
    let members = [
        (&br#""apiVersion":"#[..], parts.api_version),
        (&br#""kind":"#[..], parts.kind),
    ];
    let there = members
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| (name, value)));
    let length: usize = there
        .clone()
        .map(|(name, value)| name.len() + value.len() + 1)
        .sum();
    let before_cut = &parts.metadata[..cut.start];
    let behind_cut = &parts.metadata[cut.end..];
    const METADATA: &[u8] = br#""metadata":"#;
    let rest = METADATA.len() + before_cut.len() + behind_cut.len() + 1;
    let mut copy = Vec::with_capacity(head.len() + length + rest);
    copy.extend_from_slice(head.as_bytes());
    for (name, value) in there {
        copy.extend_from_slice(name);
        copy.extend_from_slice(value);
        copy.push(b',');
    }
    copy.extend_from_slice(METADATA);
    copy.extend_from_slice(before_cut);
    copy.extend_from_slice(behind_cut);
    copy.push(b'}');
    copy.into_boxed_slice()
}
