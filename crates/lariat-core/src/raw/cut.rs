//! Copying an object's JSON without one of its members.

use std::ops::Range;

use serde_json::value::RawValue;

use crate::Gvk;

/// Finds the bytes of the member `"name": value`, with one of the commas around it.
///
/// `value` must be borrowed from `json`. Answers `None` where the name is written in a way this does
/// not recognise (with escapes); such a member is better kept than guessed at.
pub(super) fn member_range(json: &[u8], value: &RawValue, name: &str) -> Option<Range<usize>> {
    let start = (value.get().as_ptr() as usize).checked_sub(json.as_ptr() as usize)?;
    let end = start + value.get().len();
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

/// Copies a JSON object without the bytes of `cut`, with the type of `missing_type` put in front.
pub(super) fn copy_without(
    json: &[u8],
    cut: Range<usize>,
    missing_type: Option<&Gvk>,
) -> Box<[u8]> {
    let head = missing_type.map_or_else(
        || "{".to_owned(),
        |gvk| {
            format!(
                r#"{{"apiVersion":"{}","kind":"{}","#,
                gvk.api_version(),
                gvk.kind()
            )
        },
    );
    let mut copy = Vec::with_capacity(head.len() + json.len() - cut.len());
    copy.extend_from_slice(head.as_bytes());
    copy.extend_from_slice(&json[1..cut.start.max(1)]);
    copy.extend_from_slice(&json[cut.end.max(1)..]);
    copy.into_boxed_slice()
}
