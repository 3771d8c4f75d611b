//! Rows as bytes.

use lariat_core::{Labels, ObjectKey};
use serde::{Deserialize, Serialize};

use crate::field::Value;
use crate::row::{Owner, Row};
use crate::schema::Schema;

/// A row with its values as text, which their types parse again.
#[derive(Serialize, Deserialize)]
struct Written {
    key: String,
    uid: String,
    version: String,
    cells: Vec<Vec<String>>,
    labels: Vec<(String, String)>,
    owners: Vec<(String, bool)>,
}

/// Writes a row.
pub(super) fn write(row: &Row) -> Vec<u8> {
    let values = |values: &Vec<Value>| values.iter().map(Value::to_string).collect();
    let labels = row.labels.iter();
    let owners = row.owners.iter();
    let written = Written {
        key: row.key.as_str().to_owned(),
        uid: row.uid.to_string(),
        version: row.version.to_string(),
        cells: row.cells.iter().map(values).collect(),
        labels: labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        owners: owners
            .map(|owner| (owner.uid.clone(), owner.is_controller))
            .collect(),
    };
    // Texts, booleans and lists of them can always be encoded as JSON.
    serde_json::to_vec(&written).unwrap_or_default()
}

/// Reads a row; `None` if it does not fit the schema.
pub(super) fn read(schema: &Schema, bytes: &[u8]) -> Option<Row> {
    let written: Written = serde_json::from_slice(bytes).ok()?;
    if written.cells.len() != schema.fields().len() {
        return None;
    }
    let cells = schema
        .fields()
        .iter()
        .zip(&written.cells)
        .map(|(field, texts)| {
            let values = texts.iter().map(|text| field.field_type().parse(text).ok());
            values.collect::<Option<Vec<Value>>>()
        });
    let labels = written
        .labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let owners = written
        .owners
        .into_iter()
        .map(|(uid, is_controller)| Owner { uid, is_controller });
    Some(Row {
        key: written.key.parse::<ObjectKey>().ok()?,
        uid: written.uid.into(),
        version: written.version.into(),
        cells: cells.collect::<Option<_>>()?,
        labels: labels.collect::<Labels>(),
        owners: owners.collect(),
    })
}
