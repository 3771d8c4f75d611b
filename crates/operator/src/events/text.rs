//! Adapts text to the rules of the API server for reasons, names and notes.

/// The maximum length of an object's name in bytes.
const NAME_LIMIT: usize = 253;
/// The maximum length of the name part of a qualified name in bytes.
const PART_LIMIT: usize = 63;
/// The end of a truncated text.
const ELLIPSIS: &str = "…";

/// Returns text as one word.
///
/// Characters other than letters, digits, `_` and `-` are removed, and the letter after them is capitalized.
pub(super) fn word(text: &str, limit: usize) -> String {
    let mut word = String::new();
    let mut begins = true;
    for c in text.chars() {
        if !(c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            begins = true;
            continue;
        }
        if word.len() == limit {
            break;
        }
        word.push(if begins { c.to_ascii_uppercase() } else { c });
        begins = false;
    }
    word
}

/// Truncates a text at a character boundary if it is too long.
pub(super) fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        // The ellipsis has three bytes, which count too.
        let end = (0..=limit - ELLIPSIS.len())
            .rev()
            .find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push_str(ELLIPSIS);
    }
    text
}

/// Returns the name of an Event: the object's name and a hexadecimal number.
///
/// Invalid characters of the object's name are replaced.
pub(super) fn event_name(object: &str, number: u64) -> String {
    let suffix = format!("{number:x}");
    // The suffix is never cut: it tells the Events of one object apart.
    let name = dns_name(object, NAME_LIMIT - 1 - suffix.len());
    if name.is_empty() {
        format!("object.{suffix}")
    } else {
        format!("{name}.{suffix}")
    }
}

/// Returns text as a qualified name, `[prefix/]name`.
///
/// The reporting controller of an Event must have such a name.
pub(super) fn qualified(text: &str) -> String {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (dns_name(prefix, NAME_LIMIT), name),
        None => (String::new(), text),
    };
    let valid = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let mut name: String = name.chars().map(valid).collect();
    // All characters are ASCII by now, so none is cut in two.
    name.truncate(PART_LIMIT);
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    match (prefix.is_empty(), name.is_empty()) {
        (_, true) => "operator".to_owned(),
        (true, false) => name.to_owned(),
        (false, false) => format!("{prefix}/{name}"),
    }
}

/// Returns text as a DNS name, which is empty if no character is valid.
fn dns_name(text: &str, limit: usize) -> String {
    let valid = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() || c == '.' => c,
        _ => '-',
    };
    let mut name: String = text.chars().map(valid).collect();
    name.truncate(limit);
    // Each part between dots must begin and end with a letter or digit.
    let parts: Vec<&str> = name
        .split('.')
        .map(|part| part.trim_matches('-'))
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(".")
}

/// Returns whether a text is a valid namespace, and so can be part of a path.
pub(super) fn is_namespace(text: &str) -> bool {
    let is_inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    text.len() <= PART_LIMIT
        && text.bytes().all(is_inner)
        && !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let check = |text: &str, expected: &str| assert_eq!(word(text, 12), expected, "{text:?}");
        check("Created", "Created");
        check("created", "Created");
        check("replica created", "ReplicaCreat");
        check("REPLICA_MADE", "REPLICA_MADE");
        check("a.b:c", "ABC");
        check("ü", "");
        check("", "");
    }

    #[test]
    fn cuts() {
        let check = |text: &str, expected: &str| assert_eq!(cut(text.into(), 6), expected);
        check("abcdef", "abcdef");
        check("abcdefg", "abc…");
        check("aéééé", "aé…");
        check("", "");
    }

    #[test]
    fn names_of_events() {
        let check = |object: &str, expected: &str| assert_eq!(event_name(object, 0xabc), expected);
        check("web-0", "web-0.abc");
        check("system:node-proxier", "system-node-proxier.abc");
        check("Upper_Case", "upper-case.abc");
        check("a..b.-c-", "a.b.c.abc");
        check(":", "object.abc");
        check("", "object.abc");
        let long = event_name(&"x".repeat(300), u64::MAX);
        assert_eq!(long.len(), 253);
        assert!(long.ends_with("xx.ffffffffffffffff"), "{long}");
        let dotted = event_name(&format!("{}.b", "x".repeat(248)), 0xabc);
        assert_eq!(
            dotted,
            format!("{}.abc", "x".repeat(248)),
            "no part is left empty"
        );
    }

    #[test]
    fn qualified_names() {
        let check = |text: &str, expected: &str| assert_eq!(qualified(text), expected, "{text:?}");
        check("widgeteer", "widgeteer");
        check("demo.dev/widgeteer", "demo.dev/widgeteer");
        check("My Operator!", "My-Operator");
        check("-/a/b", "a-b");
        check("", "operator");
        assert_eq!(qualified(&"x".repeat(100)).len(), 63);
    }

    #[test]
    fn namespaces() {
        for text in ["default", "a-1"] {
            assert!(is_namespace(text), "{text}");
        }
        for text in ["", "a/b", "-a", "a-", "A", "a?b", &"x".repeat(64)] {
            assert!(!is_namespace(text), "{text}");
        }
    }
}
