//! The values of unquoted texts, as go-yaml resolves them.

use serde_json::{Number, Value};

/// The value of an unquoted text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Value(Value),
    /// Infinite or not a number, which JSON cannot express, by its name in Go.
    NotFinite(&'static str),
}

/// The type of a scalar, as a tag names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Bool,
    Int,
    Float,
    Str,
}

impl Type {
    /// Returns the type of an unquoted text.
    pub(super) fn of(text: &str) -> Self {
        match resolve(text) {
            Scalar::NotFinite(_) => Self::Float,
            Scalar::Value(Value::Null) => Self::Null,
            Scalar::Value(Value::Bool(_)) => Self::Bool,
            // Whole floats have the values of integers.
            Scalar::Value(Value::Number(_)) if integer(&text.replace('_', "")).is_none() => {
                Self::Float
            }
            Scalar::Value(Value::Number(_)) => Self::Int,
            Scalar::Value(_) => Self::Str,
        }
    }

    /// Returns whether a value of another type may have a tag of this one.
    pub(super) fn takes(self, other: Self) -> bool {
        self == other || (self, other) == (Self::Float, Self::Int)
    }

    /// Returns the tag.
    pub(super) fn tag(self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool => "!!bool",
            Self::Int => "!!int",
            Self::Float => "!!float",
            Self::Str => "!!str",
        }
    }
}

/// Resolves an unquoted text; texts that are nothing else are strings.
pub(super) fn resolve(text: &str) -> Scalar {
    let value = match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::NotFinite("NaN"),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Scalar::NotFinite("+Inf");
        }
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::NotFinite("-Inf"),
        _ => number(text).unwrap_or_else(|| text.into()),
    };
    Scalar::Value(value)
}

/// Reads a number, if a text is one.
fn number(text: &str) -> Option<Value> {
    match text.as_bytes().first()? {
        b'.' => separates_digits(text).then(|| float(&text.replace('_', "")))?,
        b'0'..=b'9' | b'+' | b'-' => {
            let plain = text.replace('_', "");
            let integer = integer(&plain).or_else(|| signed_binary(&plain));
            integer.or_else(|| float(&plain))
        }
        _ => None,
    }
}

/// Returns whether each underscore is between two digits, as `strconv.ParseFloat` wants it.
fn separates_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut underscores = (0..bytes.len()).filter(|at| bytes[*at] == b'_');
    underscores.all(|at| is_digit(at - 1) && is_digit(at + 1))
}

/// Reads an integer as `strconv.ParseInt` with base 0 does, then as `strconv.ParseUint`.
fn integer(text: &str) -> Option<Value> {
    let (is_negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = unsigned.to_ascii_lowercase();
    let (digits, radix) = if let Some(digits) = lower.strip_prefix("0x") {
        (digits, 16)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (digits, 8)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (digits, 2)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (&lower[1..], 8)
    } else {
        (&lower[..], 10)
    };
    // The parser of Rust accepts a second sign.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None;
    }
    let size = u64::from_str_radix(digits, radix).ok()?;
    if is_negative {
        let value = i64::try_from(-i128::from(size)).ok()?;
        return Some(value.into());
    }
    let is_signed = text.starts_with('+');
    (!is_signed || i64::try_from(size).is_ok()).then(|| size.into())
}

/// Reads `0b` with a sign behind it, which go-yaml accepts for this prefix alone.
fn signed_binary(text: &str) -> Option<Value> {
    let digits = text.strip_prefix("0b")?;
    i64::from_str_radix(digits, 2).ok().map(Value::from)
}

/// Reads a decimal fraction; whole ones are integers, as in the JSON that Go makes of them.
fn float(text: &str) -> Option<Value> {
    if !is_float(text) {
        return None;
    }
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    // 2^63, the first number beyond those of an i64.
    if value.fract() == 0.0 && value.abs() < 9_223_372_036_854_775_808.0 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole and within the bounds"
        )]
        return Some((value as i64).into());
    }
    Number::from_f64(value).map(Value::Number)
}

/// Returns whether a text is `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_exponent = |text: &str| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        !digits.is_empty() && are_digits(digits)
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    has_digits && are_digits(whole) && are_digits(fraction) && exponent.is_none_or(is_exponent)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unquoted_texts_have_the_values_of_go() {
        for (text, expected) in [
            ("0644", json!(420)),
            ("-010", json!(-8)),
            ("0o17", json!(15)),
            ("0x1F", json!(31)),
            ("0b101", json!(5)),
            ("0b-1", json!(-1)),
            ("0b+11", json!(3)),
            ("-0b-1", json!("-0b-1")),
            ("0B-1", json!("0B-1")),
            ("0o-1", json!("0o-1")),
            ("1_000", json!(1000)),
            ("08", json!(8)),
            ("1.0", json!(1)),
            ("1.", json!(1)),
            (".5", json!(0.5)),
            (".4_9", json!(0.49)),
            (".4__9", json!(".4__9")),
            ("._4", json!("._4")),
            (".4_", json!(".4_")),
            ("1e3", json!(1000)),
            ("1e400", json!("1e400")),
            ("+5", json!(5)),
            ("--5", json!("--5")),
            ("0x-5", json!("0x-5")),
            ("-0", json!(0)),
            ("9223372036854775808", json!(9_223_372_036_854_775_808_u64)),
            ("12:30", json!("12:30")),
            ("2026-01-01", json!("2026-01-01")),
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("yEs", json!("yEs")),
            ("~", json!(null)),
            ("", json!(null)),
            ("1.2.3", json!("1.2.3")),
            ("0x", json!("0x")),
            ("-", json!("-")),
            (".", json!(".")),
            ("e5", json!("e5")),
        ] {
            assert_eq!(resolve(text), Scalar::Value(expected), "{text}");
        }
        assert_eq!(resolve("-.Inf"), Scalar::NotFinite("-Inf"));
    }
}
