//! Answers in YAML.
//!
//! Block style with the members in the order of their names, as the API server writes it. A text is
//! quoted unless nothing could take it for something else, so that every reader of YAML 1.1 or 1.2
//! gets back what was written.

use serde_json::{Map, Value};

/// Writes a document.
pub(crate) fn to_yaml(value: &Value) -> String {
    let mut text = String::new();
    write_block(&mut text, value, 0);
    text
}

/// Writes a value whose first line has been begun, and ends its last one.
fn write_block(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => write_members(text, members, indent),
        Value::Array(elements) if !elements.is_empty() => write_elements(text, elements, indent),
        scalar => {
            write_scalar(text, scalar, indent);
            text.push('\n');
        }
    }
}

fn write_members(text: &mut String, members: &Map<String, Value>, indent: usize) {
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            text.extend(std::iter::repeat_n(' ', indent));
        }
        write_text(text, name);
        text.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                new_line(text, indent + 2);
                write_members(text, inner, indent + 2);
            }
            // The elements of a list are no deeper than its name.
            Value::Array(inner) if !inner.is_empty() => {
                new_line(text, indent);
                write_elements(text, inner, indent);
            }
            scalar => {
                text.push(' ');
                write_block(text, scalar, indent + 2);
            }
        }
    }
}

fn write_elements(text: &mut String, elements: &[Value], indent: usize) {
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            text.extend(std::iter::repeat_n(' ', indent));
        }
        text.push_str("- ");
        write_block(text, element, indent + 2);
    }
}

fn new_line(text: &mut String, indent: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n(' ', indent));
}

fn write_scalar(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(scalar) if is_block(scalar) => write_lines(text, scalar, indent),
        Value::String(scalar) => write_text(text, scalar),
        // Numbers, truth values, null and what is empty are written as in JSON.
        other => text.push_str(&other.to_string()),
    }
}

/// Returns whether a text can be written line by line.
fn is_block(scalar: &str) -> bool {
    scalar.contains('\n')
        && !scalar.starts_with([' ', '\n'])
        && scalar.chars().all(|c| c == '\n' || is_printable(c))
}

fn write_lines(text: &mut String, scalar: &str, indent: usize) {
    let body = scalar.trim_end_matches('\n');
    // How many line feeds there are at the end decides what becomes of them.
    text.push_str(match scalar.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    let shown = scalar.strip_suffix('\n').unwrap_or(scalar);
    for line in shown.split('\n') {
        text.push('\n');
        if !line.is_empty() {
            text.extend(std::iter::repeat_n(' ', indent.max(2)));
            text.push_str(line);
        }
    }
}

/// Writes a text on one line, in quotes where it needs them.
fn write_text(text: &mut String, scalar: &str) {
    if is_plain(scalar) {
        text.push_str(scalar);
        return;
    }
    text.push('"');
    for c in scalar.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            c if is_printable(c) => text.push(c),
            c if u32::from(c) <= 0xffff => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => text.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    text.push('"');
}

fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

/// Returns whether a text is sure to be read as the text it is, without quotes.
fn is_plain(scalar: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/');
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '-' | ' ');
    scalar.starts_with(first)
        && scalar.chars().all(inner)
        && !scalar.ends_with(' ')
        && !RESERVED.contains(&scalar.to_ascii_lowercase().as_str())
}

/// What means something else in one version of YAML or another.
const RESERVED: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_are_written_as_blocks() {
        let document = json!({
            "kind": "ConfigMap", "data": {"a": "1", "yes": "two\nlines\n", "b.c": "x: y"},
            "metadata": {"labels": {}, "finalizers": ["demo/a", "b"], "generation": 1},
            "items": [{"a": [1, [2, 3]], "b": null}, {}], "end": "no newline\nat end",
            "ends": "two\n\n", "indented": " a\nb",
        });
        let expected = concat!(
            "data:\n  a: \"1\"\n  b.c: \"x: y\"\n  \"yes\": |\n    two\n    lines\n",
            "end: |-\n  no newline\n  at end\n",
            "ends: |+\n  two\n\n",
            "indented: \" a\\nb\"\n",
            "items:\n- a:\n  - 1\n  - - 2\n    - 3\n  b: null\n- {}\n",
            "kind: ConfigMap\n",
            "metadata:\n  finalizers:\n  - demo/a\n  - b\n  generation: 1\n  labels: {}\n",
        );
        assert_eq!(to_yaml(&document), expected);
    }

    #[test]
    fn texts_that_could_be_taken_for_something_else_are_quoted() {
        for (scalar, expected) in [
            ("plain", "plain\n"),
            ("", "\"\"\n"),
            ("True", "\"True\"\n"),
            ("1e3", "\"1e3\"\n"),
            ("-", "\"-\"\n"),
            ("~", "\"~\"\n"),
            ("a #b", "\"a #b\"\n"),
            ("2024-01-01T00:00:00Z", "\"2024-01-01T00:00:00Z\"\n"),
            ("a\u{1}\u{85}\"\\", "\"a\\u0001\\u0085\\\"\\\\\"\n"),
        ] {
            assert_eq!(to_yaml(&scalar.into()), expected, "{scalar}");
        }
    }
}
