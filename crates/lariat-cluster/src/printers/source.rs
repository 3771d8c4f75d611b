//! Where the cells of a column come from.

use jiff::Timestamp;
use lariat_apimachinery::structural::json_path::JsonPath;
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

/// Where the cells of a column come from.
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
        "string" => text,
        "integer" => integer,
        "number" => number,
        "boolean" => boolean,
        "date" => since,
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

/// Prints a number without its fraction.
pub(super) fn integer(row: Row<'_>) -> Value {
    match row.object.as_i64() {
        Some(number) => number.into(),
        None => row
            .object
            .as_f64()
            .map_or(Value::Null, |number| (number as i64).into()),
    }
}

/// Prints a number as it is.
pub(super) fn number(row: Row<'_>) -> Value {
    match row.object {
        Value::Number(_) => row.object.clone(),
        _ => Value::Null,
    }
}

/// Prints a truth value as it is.
pub(super) fn boolean(row: Row<'_>) -> Value {
    row.object.as_bool().into()
}

/// Prints how long ago a time was.
pub(super) fn since(row: Row<'_>) -> Value {
    match row.object {
        Value::String(time) => age::since(time, row.now).into(),
        _ => Value::Null,
    }
}
