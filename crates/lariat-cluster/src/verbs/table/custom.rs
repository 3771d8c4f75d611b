//! Rows of custom resources, by the columns their definition names.
//!
//! Source: `tableconvertor` in `k8s.io/apiextensions-apiserver/pkg/registry/customresource`.

use lariat_apimachinery::kinds::{Column, Resource};
use serde_json::{Value, json};

use super::age;
use super::column::{AGE, CREATED_DOC, NAME};
use super::row::{Cells, Row};

/// Returns the definitions of the columns of a custom kind.
pub(super) fn definitions(resource: &Resource) -> Vec<Value> {
    let mut definitions = vec![NAME.definition()];
    if resource.columns.is_empty() {
        let mut age = AGE.definition();
        age["type"] = "date".into();
        age["description"] = CREATED_DOC.into();
        definitions.push(age);
    }
    definitions.extend(resource.columns.iter().map(definition));
    definitions
}

/// Returns the cells of an object of a custom kind.
pub(super) fn cells(resource: &Resource, row: Row<'_>) -> Cells {
    let mut cells: Cells = vec![row.name().into()];
    if resource.columns.is_empty() {
        cells.push(row.age().into());
    }
    let columns = resource.columns.iter();
    cells.extend(columns.map(|column| cell_of(column, row)));
    cells
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name, "type": column.kind, "format": column.format,
        "description": column.description, "priority": column.priority,
    })
}

fn cell_of(column: &Column, row: Row<'_>) -> Value {
    match column.path.first(row.get("")) {
        Some(value) => cell(&column.kind, value, row),
        None => Value::Null,
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
