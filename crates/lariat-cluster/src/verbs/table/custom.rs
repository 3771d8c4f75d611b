//! Rows of custom resources, by the columns their definition names.
//!
//! Source: `tableconvertor` in `k8s.io/apiextensions-apiserver/pkg/registry/customresource`.

use serde_json::{Value, json};

use super::age;
use super::column::{AGE, CREATED_DOC, NAME};
use super::row::{Cells, Row};
use crate::kinds::Resource;

/// Returns the definitions of the columns of a custom kind.
pub(super) fn definitions(resource: &Resource) -> Vec<Value> {
    let mut definitions = vec![NAME.definition()];
    let columns = columns_of(resource);
    if columns.is_empty() {
        let mut age = AGE.definition();
        age["type"] = "date".into();
        age["description"] = CREATED_DOC.into();
        definitions.push(age);
    }
    definitions.extend(columns.iter().map(CustomColumn::definition));
    definitions
}

/// Returns the cells of an object of a custom kind.
pub(super) fn cells(resource: &Resource, row: Row<'_>) -> Cells {
    let mut cells: Cells = vec![row.name().into()];
    let columns = columns_of(resource);
    if columns.is_empty() {
        cells.push(row.age().into());
    }
    cells.extend(columns.iter().map(|column| column.cell(row)));
    cells
}

/// A column of `additionalPrinterColumns`.
#[derive(Debug)]
struct CustomColumn<'a> {
    name: &'a str,
    kind: &'a str,
    format: &'a str,
    description: &'a str,
    priority: i64,
    path: &'a str,
}

/// Returns the columns of a kind.
fn columns_of(_: &Resource) -> Vec<CustomColumn<'_>> {
    Vec::new()
}

/// Finds the values at a path of an object.
fn find<'a>(_: &str, _: &'a Value) -> Vec<&'a Value> {
    Vec::new()
}

impl CustomColumn<'_> {
    fn definition(&self) -> Value {
        let description = match self.description {
            "" => {
                let path = self.path;
                format!("Custom resource definition column (in JSONPath format): {path}")
            }
            description => description.to_owned(),
        };
        json!({
            "name": self.name, "type": self.kind, "format": self.format,
            "description": description, "priority": self.priority,
        })
    }

    fn cell(&self, row: Row<'_>) -> Value {
        match find(self.path, row.get("")).first() {
            Some(value) => cell(self.kind, value, row),
            None => Value::Null,
        }
    }
}

/// Returns a value as the type of its column has it, or null where it is of another.
fn cell(kind: &str, value: &Value, row: Row<'_>) -> Value {
    match (kind, value) {
        ("string", Value::String(_)) => value.clone(),
        ("string", Value::Null) => Value::Null,
        ("string", other) => other.to_string().into(),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(_) => value.clone(),
            None => number
                .as_f64()
                .map_or(Value::Null, |float| (float as i64).into()),
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(time)) => match time.parse::<jiff::Timestamp>() {
            Ok(_) => age::since(Some(time), row.now).into(),
            Err(_) => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}
