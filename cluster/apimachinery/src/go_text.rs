//! Values as Go prints them with `%v`, which some messages do.

use serde_json::Value;

/// Formats a value as Go's `%v` does, with the members of objects sorted.
///
/// ```
/// use lariat_apimachinery::go_text::value;
/// use serde_json::json;
///
/// assert_eq!(value(&json!({"b": [1, "x", null], "a": true})), "map[a:true b:[1 x <nil>]]");
/// ```
#[must_use]
pub fn value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(shown) if number.is_f64() => float(shown),
            _ => number.to_string(),
        },
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(self::value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, String)> = members
                .iter()
                .map(|(name, value)| (name, self::value(value)))
                .collect();
            // `fmt` sorts the keys of maps.
            members.sort();
            let pairs: Vec<String> = members
                .into_iter()
                .map(|(name, value)| format!("{name}:{value}"))
                .collect();
            format!("map[{}]", pairs.join(" "))
        }
    }
}

/// Formats a value as Go's `%#v` does, as it would be written in Go.
///
/// ```
/// use lariat_apimachinery::go_text::syntax;
/// use serde_json::json;
///
/// assert_eq!(syntax(&json!(["a", 1, null])), r#"[]interface {}{"a", 1, interface {}(nil)}"#);
/// assert_eq!(syntax(&json!({"b": 1, "a": {}})), r#"map[string]interface {}{"a":map[string]interface {}{}, "b":1}"#);
/// ```
#[must_use]
pub fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            let pairs = members.into_iter();
            let pairs = pairs.map(|(name, value)| format!("{}:{}", quoted(name), syntax(value)));
            let pairs: Vec<String> = pairs.collect();
            format!("map[string]interface {{}}{{{}}}", pairs.join(", "))
        }
        other => self::value(other),
    }
}

/// Returns the Go type to which a JSON value decodes.
#[must_use]
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Quotes a text as Go's `%q` does.
///
/// ```
/// use lariat_apimachinery::go_text::quoted;
///
/// assert_eq!(quoted("one\ntwo"), r#""one\ntwo""#);
/// ```
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\u{b}' => quoted.push_str("\\v"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '"' | '\\' => quoted.extend(['\\', character]),
            // Two digits up to 0x7f, where Go writes bytes; four or eight for other characters that are not printed.
            '\0'..' ' | '\u{7f}' => quoted += &format!("\\x{:02x}", character as u32),
            _ if is_print(character) => quoted.push(character),
            '\0'..='\u{ffff}' => quoted += &format!("\\u{:04x}", character as u32),
            _ => quoted += &format!("\\U{:08x}", character as u32),
        }
    }
    quoted.push('"');
    quoted
}

/// Formats a value for a cause: a text as by `%q`, anything else as JSON.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => json(other),
    }
}

/// Formats a value as Go's `encoding/json` does, with HTML characters escaped.
#[must_use]
pub fn json(value: &Value) -> String {
    const ESCAPED: [(char, &str); 5] = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    // The characters can only stand in texts, so replacing them in the whole document is safe.
    let mut json = value.to_string();
    for (character, escaped) in ESCAPED {
        if json.contains(character) {
            json = json.replace(character, escaped);
        }
    }
    json
}

/// Returns whether a character can be printed, as `unicode.IsPrint` does.
///
/// A space can.
#[must_use]
pub fn is_print(character: char) -> bool {
    // A combining mark is printed as well.
    let pair = ['a', character].iter().collect::<String>();
    let mut escaped = pair.escape_debug().skip(1);
    escaped.next() == Some(character) || matches!(character, '\'' | '"' | '\\')
}

/// Returns a number as Go's `%v` prints it.
pub(crate) fn float(number: f64) -> String {
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    if (-4..6).contains(&exponent.parse().unwrap_or(0)) {
        return number.to_string();
    }
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    // Go writes at least two digits of the exponent, and its sign.
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Returns a number as Go writes it in JSON.
pub(crate) fn json_float(number: f64) -> String {
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.parse().unwrap_or(0) {
        -6..21 => number.to_string(),
        exponent => format!("{digits}e{exponent:+}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_look_as_go_prints_them() {
        for (value, expected) in [
            (json!({"image": "noname"}), "map[image:noname]"),
            (
                json!({"b": [1, "x", null], "a": true}),
                "map[a:true b:[1 x <nil>]]",
            ),
            (json!({}), "map[]"),
            (json!([0.5, 1e21, 1.5e-7]), "[0.5 1e+21 1.5e-07]"),
            (
                json!([123456.5, 1234567.5, 1e6]),
                "[123456.5 1.2345675e+06 1e+06]",
            ),
        ] {
            assert_eq!(super::value(&value), expected);
        }
    }

    #[test]
    fn texts_are_quoted_as_go_quotes_them() {
        for (text, expected) in [
            ("a b", r#""a b""#),
            ("bad\u{7}\n\u{1}", r#""bad\a\n\x01""#),
            ("\"\\é", r#""\"\\é""#),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn numbers_are_shown_as_go_shows_them() {
        for (number, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (-2.25, "-2.25"),
            (1e21, "1e+21"),
            (1e-5, "1e-05"),
            (123456.0, "123456"),
            (123456789.0, "1.23456789e+08"),
        ] {
            assert_eq!(float(number), text);
        }
    }

    #[test]
    fn what_go_does_not_print_is_shown_by_its_number() {
        assert_eq!(
            quoted("<\u{1}\u{200b}é'\"e\u{301}"),
            "\"<\\x01\\u200bé'\\\"e\u{301}\""
        );
        assert_eq!(
            quoted("\u{35c29}\u{a0}\u{2028}"),
            r#""\U00035c29\u00a0\u2028""#
        );
        let list = shown(&json!(["a<b>&\u{1}\u{200b}"]));
        assert_eq!(list, "[\"a\\u003cb\\u003e\\u0026\\u0001\u{200b}\"]");
    }
}
