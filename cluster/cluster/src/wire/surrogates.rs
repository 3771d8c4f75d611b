//! Halves of characters that are escaped alone, which no text can have.

use std::borrow::Cow;

use bytes::Bytes;

/// Returns JSON whose lone surrogates are replaced by U+FFFD, as Go's decoder reads them.
///
/// Source: `unquoteBytes` in `encoding/json`.
pub(crate) fn replaced(json: Bytes) -> Bytes {
    match replace(&json) {
        Cow::Borrowed(_) => json,
        Cow::Owned(replaced) => replaced.into(),
    }
}

fn replace(json: &[u8]) -> Cow<'_, [u8]> {
    let mut replaced: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &json[at..]) {
        let start = at + found;
        let Some(unit) = escaped(json, start) else {
            // The character behind it is escaped, and begins nothing.
            at = (start + 2).min(json.len());
            continue;
        };
        at = start + LENGTH;
        let is_first = (0xD800..0xDC00).contains(&unit);
        let follows = escaped(json, at).filter(|next| (0xDC00..0xE000).contains(next));
        if is_first && follows.is_some() {
            at += LENGTH;
        } else if (0xD800..0xE000).contains(&unit) {
            let text = replaced.get_or_insert_with(|| json.to_vec());
            text[start..at].copy_from_slice(b"\\ufffd");
        }
    }
    replaced.map_or(Cow::Borrowed(json), Cow::Owned)
}

/// The length of an escaped unit of UTF-16.
const LENGTH: usize = 6;

/// Returns the unit of UTF-16 that is escaped at a place.
fn escaped(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + LENGTH)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_number.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_halves_are_replaced_and_pairs_are_not() {
        for (json, expected) in [
            (r#""\ud800""#, r#""\ufffd""#),
            (r#""\udc00x""#, r#""\ufffdx""#),
            (r#""\uD83D\uDE00""#, r#""\uD83D\uDE00""#),
            (r#""\ud800\u0041""#, r#""\ufffd\u0041""#),
            (r#""\ud800\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud800""#, r#""\\ud800""#),
            (r#""\uZZZZ\u12"#, r#""\uZZZZ\u12"#),
            ("\\", "\\"),
        ] {
            assert_eq!(replace(json.as_bytes()), expected.as_bytes(), "{json}");
        }
    }
}
