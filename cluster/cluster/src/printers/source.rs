//! The sources of the cells of columns.

use jiff::Timestamp;
use lariat_apimachinery::structural::json_path::JsonPath;
use lariat_apimachinery::{go_text, go_time};
use serde_json::Value;

use super::age;

/// An object, or a part of one, whose cells are printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) object: &'a Value,
    /// The time from which ages are counted.
    pub(super) now: Timestamp,
}

/// Computes a cell from the value that a path leads to; null stands for no value.
pub(super) type Function = fn(Row<'_>) -> Value;

/// The source of the cells of a column: a path or a function.
#[derive(Debug)]
pub(super) struct Source {
    /// Paths and what is made of their values. The first that yields a value is the cell.
    pub(super) alternatives: Vec<(JsonPath, Function)>,
    /// The cell if none of them yields one. Where it is not null, an empty text counts as no value.
    pub(super) missing: Value,
}

impl Source {
    /// Creates the source of the value of one path.
    pub(super) fn of_path(path: JsonPath, function: Function, missing: impl Into<Value>) -> Self {
        Self {
            alternatives: vec![(path, function)],
            missing: missing.into(),
        }
    }

    /// Returns the cell of an object.
    pub(super) fn cell(&self, row: Row<'_>) -> Value {
        let yielded = self.alternatives.iter().filter_map(|(path, function)| {
            let object = path.first(row.object)?;
            Some(function(Row { object, ..row }))
        });
        let is_value = |cell: &Value| !cell.is_null() && (self.missing.is_null() || *cell != "");
        let mut values = yielded.filter(is_value);
        values.next().unwrap_or_else(|| self.missing.clone())
    }
}

/// Returns the function that prints values of a type of columns, which CRDs name.
pub(super) fn function_of(kind: &str) -> Function {
    match kind {
        "string" => printed,
        "integer" => integer,
        "number" => fraction,
        "boolean" => boolean,
        "date" => date,
        _ => |_| Value::Null,
    }
}

/// Prints a text as it is, and any other value as JSON.
pub(super) fn text(row: Row<'_>) -> Value {
    match row.object {
        Value::String(_) | Value::Null => row.object.clone(),
        other => other.to_string().into(),
    }
}

/// Prints a value of a custom resource as `PrintResults` of Go's JSONPath does.
fn printed(row: Row<'_>) -> Value {
    match row.object {
        Value::Null => "<no value>".into(),
        Value::Array(_) | Value::Object(_) => in_html(&row.object.to_string()).into(),
        Value::Number(number) if number.as_i64().is_none() => {
            let number = number.as_f64().unwrap_or_default();
            go_text::value(&number.into()).into()
        }
        _ => text(row),
    }
}

/// Writes the characters of a JSON document that Go escapes for HTML.
fn in_html(json: &str) -> String {
    // Outside of its texts, JSON has none of them.
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => text.push(character),
        }
    }
    text
}

/// Prints a number without its fraction.
pub(super) fn integer(row: Row<'_>) -> Value {
    match (row.object.as_i64(), row.object.as_f64()) {
        (Some(number), _) => number.into(),
        (None, Some(number)) => {
            // 2^63, from which on Go's conversion overflows on the processors it is used on.
            let fits = number.abs() < 9_223_372_036_854_775_808.0;
            (if fits { number as i64 } else { i64::MIN }).into()
        }
        (None, None) => Value::Null,
    }
}

/// Prints a number as it is.
pub(super) fn number(row: Row<'_>) -> Value {
    match row.object {
        Value::Number(_) => row.object.clone(),
        _ => Value::Null,
    }
}

/// Prints a number of a custom resource, which Go makes a float of.
fn fraction(row: Row<'_>) -> Value {
    match row.object.as_i64() {
        // Beyond 2^53 a float does not have all digits, and the missing ones are written as zeros.
        Some(number) if number.unsigned_abs() > 1 << 53 => {
            let shortest = format!("{:e}", number as f64);
            let (digits, exponent) = shortest.split_once('e').unwrap_or_default();
            let exponent: usize = exponent.parse().unwrap_or_default();
            let (first, rest) = digits.split_once('.').unwrap_or((digits, ""));
            serde_json::from_str(&format!("{first}{rest:0<exponent$}")).unwrap_or_default()
        }
        _ => number(row),
    }
}

/// Prints a truth value as it is.
pub(super) fn boolean(row: Row<'_>) -> Value {
    row.object.as_bool().into()
}

/// Prints how long ago a time was, which is null if it is the zero of times.
pub(super) fn since(row: Row<'_>) -> Value {
    match row.object {
        Value::String(time) => age::since(time, row.now).into(),
        _ => age::UNKNOWN.into(),
    }
}

/// Prints how long ago a time in a custom resource was, which may be any text.
///
/// Source: `Time.UnmarshalQueryParameter` in `k8s.io/apimachinery/pkg/apis/meta/v1`.
fn date(row: Row<'_>) -> Value {
    let text = match row.object {
        Value::String(text) => &**text,
        _ => return Value::Null,
    };
    match go_time::rfc3339(text) {
        _ if matches!(text, "" | "null") => age::UNKNOWN.into(),
        Ok(time) if time == age::ZERO => age::UNKNOWN.into(),
        Ok(time) => age::between(time, row.now).into(),
        Err(_) => age::INVALID.into(),
    }
}
