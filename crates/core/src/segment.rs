//! Names as segments of URL paths.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes a name for use as one segment of a URL path.
///
/// Names of most kinds need no escapes. Names of roles and some others may contain `?`, `#` and spaces: without
/// escapes, a request for `victim?x` would be a request for `victim`. Like Go's `url.PathEscape`, it does not escape
/// `:` and some other characters.
///
/// ```
/// use lariat_core::path_segment;
///
/// assert_eq!(path_segment("system:node"), "system:node");
/// assert_eq!(path_segment("victim?x"), "victim%3Fx");
/// ```
#[must_use]
pub fn path_segment(name: &str) -> Cow<'_, str> {
    // Nearly all names, which then need no allocation.
    if name.bytes().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::with_capacity(name.len() + 8);
    for byte in name.bytes() {
        if is_plain(byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    Cow::Owned(escaped)
}

/// Returns the name in a segment of a URL path: the inverse of [`path_segment`].
///
/// A segment whose escapes are not UTF-8 is returned unchanged.
///
/// ```
/// assert_eq!(lariat_core::name_of_segment("victim%3Fx"), "victim?x");
/// ```
#[must_use]
pub fn name_of_segment(segment: &str) -> Cow<'_, str> {
    if !segment.contains('%') {
        return Cow::Borrowed(segment);
    }
    let bytes = segment.as_bytes();
    let mut read = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = segment.get(at + 1..at + 3).filter(|_| byte == b'%');
        // `from_str_radix` would accept a sign too.
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(escaped) => {
                read.push(escaped);
                at += 3;
            }
            None => {
                read.push(byte);
                at += 1;
            }
        }
    }
    // Names are UTF-8, so such a segment names no object either way.
    String::from_utf8(read).map_or(Cow::Borrowed(segment), Cow::Owned)
}

/// Returns why a text cannot be a name or namespace; `None` if it can.
///
/// Such a text must not be put into a path, not even escaped: the API server reads `a/status` as a subresource of `a`.
/// The rule is `IsValidPathSegmentName` of apimachinery.
///
/// ```
/// use lariat_core::not_a_name;
///
/// assert_eq!(not_a_name("web-0"), None);
/// assert_eq!(not_a_name("a/status"), Some("contains '/'"));
/// ```
#[must_use]
pub fn not_a_name(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("is empty"),
        "." | ".." => Some("is a path"),
        name if name.contains('/') => Some("contains '/'"),
        name if name.contains('%') => Some("contains '%'"),
        _ => None,
    }
}

/// Returns whether a byte needs no escape.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~$&+,;=:@!*'()".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_ends_or_splits_a_segment_is_escaped() {
        for (name, segment) in [
            ("web-0.shop", "web-0.shop"),
            ("system:kube-scheduler", "system:kube-scheduler"),
            ("a?b#c", "a%3Fb%23c"),
            ("a/b%2F", "a%2Fb%252F"),
            ("a b\"ä", "a%20b%22%C3%A4"),
        ] {
            assert_eq!(path_segment(name), segment);
            assert_eq!(name_of_segment(segment), name);
        }
    }

    #[test]
    fn escapes_that_are_none_stay() {
        for segment in ["%", "%4", "%zz", "%ff", "a%+1", "%ä"] {
            assert_eq!(name_of_segment(segment), segment);
        }
    }

    #[test]
    fn names_no_object_can_have_are_known() {
        for name in ["", ".", "..", "a/status", "../b", "a%2F"] {
            assert!(not_a_name(name).is_some(), "{name}");
        }
        for name in ["a", "...", "a?x", "a#b", "system:node"] {
            assert_eq!(not_a_name(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn every_name_comes_back(name in any::<String>()) {
            let segment = path_segment(&name);
            prop_assert!(segment.bytes().all(|byte| is_plain(byte) || byte == b'%'));
            prop_assert_eq!(name_of_segment(&segment), &name[..]);
        }
    }
}
