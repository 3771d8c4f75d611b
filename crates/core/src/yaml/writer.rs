//! Writing a document.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::scalar::{self, Scalar};

/// The longest key of which readers look for the colon on the same line.
const SIMPLE_KEY: usize = 128;

/// Writes a value as YAML, in the form that kubectl prints.
///
/// Members are sorted by name. Texts of several lines are blocks if readers cannot change them; other texts that are
/// not plain words are in double quotes.
///
/// ```
/// use lariat_core::yaml;
/// use serde_json::json;
///
/// let value = json!({"data": {"run.sh": "echo one\necho two\n"}, "on": ["12:30", "a b", 5]});
/// let expected = "data:\n  run.sh: |\n    echo one\n    echo two\n\"on\":\n- \"12:30\"\n- a b\n- 5\n";
/// assert_eq!(yaml::write(&value), expected);
/// ```
#[must_use]
pub fn write(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(members) if !members.is_empty() => mapping(&mut text, members, 0),
        Value::Array(items) if !items.is_empty() => list(&mut text, items, 0),
        flat => {
            text.push_str(&inline(flat));
            text.push('\n');
        }
    }
    text
}

/// Writes members; the first one continues the line, the others begin their own.
fn mapping(text: &mut String, members: &Map<String, Value>, level: usize) {
    for (at, (name, value)) in members.iter().enumerate() {
        if at > 0 {
            indent(text, level);
        }
        let key = word(name);
        if key.len() > SIMPLE_KEY {
            text.push_str("? ");
            text.push_str(&key);
            text.push('\n');
            indent(text, level);
        } else {
            text.push_str(&key);
        }
        text.push(':');
        member(text, value, level);
    }
}

/// Writes the value of a member, behind its colon.
fn member(text: &mut String, value: &Value, level: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            text.push('\n');
            indent(text, level + 1);
            mapping(text, members, level + 1);
        }
        // As kubectl does, a list is not deeper than its name.
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            indent(text, level);
            list(text, items, level);
        }
        Value::String(lines) if is_block(lines) => block(text, lines, level + 1),
        flat => {
            text.push(' ');
            text.push_str(&inline(flat));
            text.push('\n');
        }
    }
}

/// Writes items; the first one continues the line, the others begin their own.
fn list(text: &mut String, items: &[Value], level: usize) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            indent(text, level);
        }
        text.push('-');
        match item {
            Value::Object(members) if !members.is_empty() => {
                text.push(' ');
                mapping(text, members, level + 1);
            }
            Value::Array(inner) if !inner.is_empty() => {
                text.push(' ');
                list(text, inner, level + 1);
            }
            Value::String(lines) if is_block(lines) => block(text, lines, level + 1),
            flat => {
                text.push(' ');
                text.push_str(&inline(flat));
                text.push('\n');
            }
        }
    }
}

fn indent(text: &mut String, level: usize) {
    for _ in 0..level {
        text.push_str("  ");
    }
}

/// Writes lines as a literal block.
fn block(text: &mut String, lines: &str, level: usize) {
    text.push_str(if lines.ends_with('\n') {
        " |\n"
    } else {
        " |-\n"
    });
    for line in lines.lines() {
        if !line.is_empty() {
            indent(text, level);
            text.push_str(line);
        }
        text.push('\n');
    }
}

/// Returns whether a text is the same when it is read from a literal block.
fn is_block(text: &str) -> bool {
    let ended = text.strip_suffix('\n').unwrap_or(text);
    let begins = ended.starts_with(|first: char| !first.is_whitespace());
    let is_kept = |letter: char| letter == '\n' || letter == '\t' || is_printable(letter);
    // Blanks at the end of lines survive, but are invisible, so quotes show them.
    let is_visible = |line: &str| !line.ends_with([' ', '\t']);
    text.contains('\n')
        && begins
        && !ended.ends_with('\n')
        && text.chars().all(is_kept)
        && ended.lines().all(is_visible)
}

/// Writes a value that fits on the line.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => word(text),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
        flat => flat.to_string(),
    }
}

/// Writes a text, in quotes unless all readers find the same text without.
fn word(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            letter if is_printable(letter) => quoted.push(letter),
            letter => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Returns whether YAML allows a character as it is, other than ends of lines.
fn is_printable(letter: char) -> bool {
    match letter {
        ' '..='~' => true,
        // Control characters, ends of lines, the byte order mark, and no characters at all.
        '\0'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => false,
        // A blank that looks like another one.
        '\u{a0}' => false,
        _ => true,
    }
}

/// Returns whether a text without quotes is the same text to all readers.
fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else {
        return false;
    };
    let is_letter = |letter: char| letter.is_alphanumeric() && is_printable(letter);
    let is_sign = |letter: char| "_-./:@=+,()~%^<>$;|* ".contains(letter);
    let begins = is_letter(first) || matches!(first, '_' | '/' | '(' | '$');
    let has_odd = text
        .chars()
        .any(|letter| !is_letter(letter) && !is_sign(letter));
    let is_structure = text.contains(": ") || text.ends_with([':', ' ']);
    let is_marker = text.starts_with("---") || text.starts_with("...");
    begins && !has_odd && !is_structure && !is_marker && !is_number(text) && is_text(text)
}

/// Returns whether kubectl finds a string in an unquoted text.
fn is_text(text: &str) -> bool {
    matches!(scalar::resolve(text), Scalar::Value(Value::String(_)))
}

/// Returns whether another reader may find a number, a time or a date in an unquoted text.
fn is_number(text: &str) -> bool {
    let begins = text.starts_with(|first: char| first.is_numeric());
    let is_part = |letter: char| {
        !letter.is_ascii_alphabetic() || letter.is_ascii_hexdigit() || "oOxXtTzZ".contains(letter)
    };
    begins && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::yaml::read;

    #[test]
    fn documents_are_written_as_kubectl_does() {
        let written = write(&json!({
            "kind": "Role", "metadata": {"name": "a:b", "labels": {}},
            "rules": [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["*", "on"]}, [[1], []]],
        }));
        let expected = "kind: Role\nmetadata:\n  labels: {}\n  name: a:b\nrules:\n- apiGroups:\n  - \"\"\n  \
                        resources:\n  - pods\n  - pods/status\n  verbs:\n  - \"*\"\n  - \"on\"\n- - - 1\n  - []\n";
        assert_eq!(written, expected);
    }

    #[test]
    fn texts_with_another_meaning_are_quoted() {
        for text in [
            "",
            "1",
            "1.5",
            "0x1F",
            "1e3",
            "12:30:00",
            "null",
            "True",
            "yes",
            "n",
            "a: b",
            "a #b",
            "~",
            "*",
            "=",
            "2026-01-01",
            "2026-01-01T00:00:00Z",
            "1.2.3.4",
            "---",
            "- a",
            "a:",
            " a",
            "a ",
            "&a",
            "!a",
            "'a'",
            "<<",
            "\u{feff}a",
            "٣",
        ] {
            assert_eq!(write(&text.into()), format!("{}\n", word(text)));
            assert!(word(text).starts_with('"'), "{text}");
        }
        for text in [
            "pods",
            "pods/status",
            "demo.dev",
            "e1",
            "a b",
            "é",
            "https://localhost:1",
            "500m",
            "64Mi",
            "a=b",
            "1h",
        ] {
            assert_eq!(write(&text.into()), format!("{text}\n"));
        }
    }

    #[test]
    fn lines_are_a_block_if_readers_keep_them() {
        let written = |text: &str| write(&json!({"a": text}));
        assert_eq!(written("one\n\n  two\n"), "a: |\n  one\n\n    two\n");
        assert_eq!(written("one\ntwo"), "a: |-\n  one\n  two\n");
        for text in [
            "\n",
            " one\ntwo",
            "one\n\n",
            "one \ntwo",
            "one\r\ntwo",
            "one\n\u{85}two",
        ] {
            assert!(written(text).starts_with("a: \""), "{text:?}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let text = || prop_oneof!["[ -~]{0,6}", "(\\PC|[\n\t\r #:\"'-]){0,8}", any::<String>()];
        let flat = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text().prop_map(Value::from),
        ];
        flat.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text(), inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn written_values_are_read_again(value in value()) {
            let text = write(&value);
            prop_assert_eq!(read(&text), Ok(value), "{}", text);
        }
    }
}
