//! Errors of Go's JSON decoder for invalid JSON.
//!
//! Source: the states of `scanner` in Go's `encoding/json`.

use std::ops::Range;

use serde_json::Value;

use crate::nesting::DEEPEST;

/// Returns the error of Go's decoder for a text; `None` if it is valid JSON.
///
/// Bytes that are not UTF-8 are accepted, because Go replaces them. A document may be [`DEEPEST`] levels deep, in Go
/// 10,000.
///
/// ```
/// use lariat_apimachinery::go_json::syntax_error;
///
/// let error = syntax_error(br#"{"a": tru}"#);
/// assert_eq!(error.unwrap(), "invalid character '}' in literal true (expecting 'e')");
/// assert_eq!(syntax_error(b"[1, 2]"), None);
/// ```
#[must_use]
pub fn syntax_error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner {
        text,
        at: 0,
        too_large: None,
    };
    scanner.document().err()
}

/// Returns Go's error for valid JSON with a number that no float can hold.
///
/// ```
/// use lariat_apimachinery::go_json::overflow;
///
/// let error = overflow(b"[1, 1e400]");
/// assert_eq!(error.unwrap(), "json: cannot unmarshal number 1e400 into Go value of type float64");
/// ```
#[must_use]
pub fn overflow(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner {
        text,
        at: 0,
        too_large: None,
    };
    scanner.document().ok()?;
    let number = std::str::from_utf8(&text[scanner.too_large?]).ok()?;
    Some(format!(
        "json: cannot unmarshal number {number} into Go value of type float64"
    ))
}

/// Returns Go's error for a value of the wrong type.
///
/// ```
/// use lariat_apimachinery::go_json::type_error;
///
/// let error = type_error(&"three".into(), "int32");
/// assert_eq!(error, "json: cannot unmarshal string into Go value of type int32");
/// ```
#[must_use]
pub fn type_error(value: &Value, wanted: &str) -> String {
    let found = type_name(value);
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// Returns the name of a value's JSON type in errors of Go.
#[must_use]
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// The place of the first number that no float can hold.
    too_large: Option<Range<usize>>,
}

impl Scanner<'_> {
    /// Reads values; a stack of their opening brackets takes the place of recursion.
    fn document(&mut self) -> Result<(), String> {
        let mut open = Vec::new();
        loop {
            let opened = self.value(open.len())?;
            if opened.is_some() {
                open.extend(opened);
                continue;
            }
            if !self.behind_value(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Reads a scalar, or the opening bracket of a list or an object.
    ///
    /// In an object, it also reads the key of the first member. Returns the bracket if members follow. `depth` is the
    /// number of lists and objects around the value.
    fn value(&mut self, depth: usize) -> Result<Option<u8>, String> {
        match self.token()? {
            bracket @ (b'{' | b'[') if depth == DEEPEST => wrong(bracket, "exceeded max depth"),
            b'{' => match self.token()? {
                b'}' => Ok(None),
                first => self.key(first).map(|()| Some(b'{')),
            },
            b'[' => {
                let start = self.at;
                // An empty list. Otherwise the byte belongs to the first element, which is read from its beginning.
                if self.token()? == b']' {
                    return Ok(None);
                }
                self.at = start;
                Ok(Some(b'['))
            }
            b'"' => self.string().map(|()| None),
            first @ (b'-' | b'0'..=b'9') => self.number(first).map(|()| None),
            b't' => self.literal("true").map(|()| None),
            b'f' => self.literal("false").map(|()| None),
            b'n' => self.literal("null").map(|()| None),
            other => wrong(other, "looking for beginning of value"),
        }
    }

    /// Reads on behind a value; returns whether another one has to follow.
    fn behind_value(&mut self, open: &mut Vec<u8>) -> Result<bool, String> {
        loop {
            let Some(bracket) = open.last() else {
                return match self.skip_space() {
                    None => Ok(false),
                    Some(other) => wrong(other, "after top-level value"),
                };
            };
            match (bracket, self.token()?) {
                (b'{', b'}') | (b'[', b']') => drop(open.pop()),
                (b'[', b',') => return Ok(true),
                // Go allows no comma before the closing bracket.
                (b'{', b',') => {
                    let first = self.token()?;
                    self.key(first)?;
                    return Ok(true);
                }
                (b'{', other) => return wrong(other, "after object key:value pair"),
                (_, other) => return wrong(other, "after array element"),
            }
        }
    }

    /// Reads the key of a member, whose first byte was read, and the colon.
    fn key(&mut self, first: u8) -> Result<(), String> {
        if first != b'"' {
            return wrong(first, "looking for beginning of object key string");
        }
        self.string()?;
        match self.token()? {
            b':' => Ok(()),
            other => wrong(other, "after object key"),
        }
    }

    /// Reads a text behind its opening quote.
    fn string(&mut self) -> Result<(), String> {
        loop {
            match self.byte()? {
                b'"' => return Ok(()),
                b'\\' => self.escape()?,
                // Control characters must be escaped; bytes from 0x80 on are not looked at.
                other @ 0..0x20 => return wrong(other, "in string literal"),
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        match self.inner_byte() {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => Ok(()),
            b'u' => (0..4).try_for_each(|_| match self.inner_byte() {
                digit if digit.is_ascii_hexdigit() => Ok(()),
                other => wrong(other, "in \\u hexadecimal character escape"),
            }),
            other => wrong(other, "in string escape code"),
        }
    }

    fn number(&mut self, first: u8) -> Result<(), String> {
        let start = self.at - 1;
        self.parts_of_number(first)?;
        let number = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        if self.too_large.is_none() && number.parse().is_ok_and(f64::is_infinite) {
            self.too_large = Some(start..self.at);
        }
        Ok(())
    }

    fn parts_of_number(&mut self, first: u8) -> Result<(), String> {
        let mut digit = first;
        if first == b'-' {
            digit = self.inner_byte();
            if !digit.is_ascii_digit() {
                return wrong(digit, "in numeric literal");
            }
        }
        // Nothing but a point or an exponent follows a zero.
        // So `01` is the number 0 and then a wrong character, which is what Go says.
        if digit != b'0' {
            self.digits();
        }
        if self.next_if(b".") {
            self.one_digit("after decimal point in numeric literal")?;
        }
        if self.next_if(b"eE") {
            self.next_if(b"+-");
            self.one_digit("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn one_digit(&mut self, place: &str) -> Result<(), String> {
        let digit = self.inner_byte();
        if !digit.is_ascii_digit() {
            return wrong(digit, place);
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while self.next_if(b"0123456789") {}
    }

    fn literal(&mut self, name: &str) -> Result<(), String> {
        for expected in name.bytes().skip(1) {
            let byte = self.inner_byte();
            if byte != expected {
                let place = format!("in literal {name} (expecting '{}')", expected as char);
                return wrong(byte, &place);
            }
        }
        Ok(())
    }

    /// Reads the next byte that is no space.
    fn token(&mut self) -> Result<u8, String> {
        self.skip_space();
        self.byte()
    }

    /// Goes on to the next byte that is no space, and returns it.
    fn skip_space(&mut self) -> Option<u8> {
        while self.next_if(b" \t\r\n") {}
        self.text.get(self.at).copied()
    }

    fn byte(&mut self) -> Result<u8, String> {
        let byte = self.text.get(self.at).copied();
        // Also at the end, where the position is not used any more.
        self.at += 1;
        byte.ok_or_else(|| "unexpected end of JSON input".to_owned())
    }

    /// Reads a byte inside of a number, an escape or a literal; a blank at the end.
    // `scanner.eof` makes a step with a blank, and its error counts.
    fn inner_byte(&mut self) -> u8 {
        self.byte().unwrap_or(b' ')
    }

    fn next_if(&mut self, wanted: &[u8]) -> bool {
        let fits = self
            .text
            .get(self.at)
            .is_some_and(|byte| wanted.contains(byte));
        self.at += usize::from(fits);
        fits
    }
}

fn wrong<T>(byte: u8, place: &str) -> Result<T, String> {
    let shown = match byte {
        b'\'' => "\\'".to_owned(),
        b'"' => "\"".to_owned(),
        b'\\' => "\\\\".to_owned(),
        0x07 => "\\a".to_owned(),
        0x08 => "\\b".to_owned(),
        0x0c => "\\f".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        0x0b => "\\v".to_owned(),
        0..0x20 | 0x7f => format!("\\x{byte:02x}"),
        // Go converts the byte to a rune, so a byte of UTF-8 is shown as the Latin-1 character of its number.
        0x80..0xa0 => format!("\\u{byte:04x}"),
        other => char::from(other).to_string(),
    };
    Err(format!("invalid character '{shown}' {place}"))
}

#[cfg(test)]
mod tests {
    use super::syntax_error;

    fn check(text: &str, error: &str) {
        let found = syntax_error(text.as_bytes());
        assert_eq!(found.as_deref(), Some(error), "{text}");
    }

    #[test]
    fn an_end_inside_of_a_token_is_a_blank() {
        for (text, error) in [
            ("{\"a\":1", "unexpected end of JSON input"),
            ("", "unexpected end of JSON input"),
            ("  [", "unexpected end of JSON input"),
            ("\"a", "unexpected end of JSON input"),
            (
                "tru",
                "invalid character ' ' in literal true (expecting 'e')",
            ),
            ("-", "invalid character ' ' in numeric literal"),
            (
                "1.",
                "invalid character ' ' after decimal point in numeric literal",
            ),
            (
                "1e+",
                "invalid character ' ' in exponent of numeric literal",
            ),
            ("\"\\", "invalid character ' ' in string escape code"),
            (
                "\"\\u1",
                "invalid character ' ' in \\u hexadecimal character escape",
            ),
        ] {
            check(text, error);
        }
    }

    #[test]
    fn errors_are_worded_as_a_genuine_server_words_them() {
        for (text, error) in [
            (
                "{x",
                "invalid character 'x' looking for beginning of object key string",
            ),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            (
                "{\"a\":1,}",
                "invalid character '}' looking for beginning of object key string",
            ),
            (
                "[1,]",
                "invalid character ']' looking for beginning of value",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            (
                "nonsense",
                "invalid character 'o' in literal null (expecting 'u')",
            ),
            (
                "{\"a\":\"\\x\"}",
                "invalid character 'x' in string escape code",
            ),
            (
                "{\"a\":01}",
                "invalid character '1' after object key:value pair",
            ),
            ("{\"a\":1}x", "invalid character 'x' after top-level value"),
            ("{\"a\":-}", "invalid character '}' in numeric literal"),
            (
                "[1.]",
                "invalid character ']' after decimal point in numeric literal",
            ),
            (
                "[1e]",
                "invalid character ']' in exponent of numeric literal",
            ),
            (
                "{\"a\":\"\u{1}\"}",
                "invalid character '\\x01' in string literal",
            ),
            (
                "[\"\\u12g4\"]",
                "invalid character 'g' in \\u hexadecimal character escape",
            ),
        ] {
            check(text, error);
        }
    }

    #[test]
    fn nothing_is_wrong_where_serde_reads() {
        for text in [
            "{}",
            "[[],{}]",
            "-0.5e+7",
            "\"\\u00e9\"",
            " null ",
            "{\"a\":[{\"b\":1}]}",
        ] {
            serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(syntax_error(text.as_bytes()), None, "{text}");
        }
    }
}
