//! Rows as bytes.

use lariat_cache::CachedObject;
use lariat_core::{Labels, ObjectKey, RawObject};
use serde::{Deserialize, Serialize};

use crate::field::Value;
use crate::query::{Plan, Target};
use crate::row::{Owner, Row};
use crate::schema::{Schema, is_base};

/// The largest indexed part of a row in bytes.
///
/// Every query that may see a row decrypts and parses this part. A larger one is left out, and read from the object by
/// the queries that need it, so that the labels of one object do not make all queries slow.
pub(crate) const LONGEST: usize = 16 * 1024;

/// A row with its values as text, which their types parse again.
#[derive(Serialize, Deserialize)]
struct Written {
    key: String,
    uid: String,
    version: String,
    cells: Vec<Vec<String>>,
    labels: Vec<(String, String)>,
    owners: Vec<(String, bool)>,
    is_whole: bool,
}

/// The indexed part of a row.
pub(super) struct Content {
    pub(super) row: Row,
    /// Whether the row has all fields, labels and owners of its object.
    ///
    /// Otherwise it has only the fields that every kind has.
    pub(super) is_whole: bool,
}

/// Writes a row, or the beginning of one that is longer than `longest` bytes.
pub(super) fn write(row: &Row, longest: usize) -> Vec<u8> {
    let whole = encode(row, true);
    if whole.len() <= longest {
        return whole;
    }
    let cells = row.cells.iter().enumerate().map(|(place, values)| {
        if is_base(place) {
            values.clone()
        } else {
            Vec::new()
        }
    });
    let beginning = Row {
        key: row.key.clone(),
        uid: row.uid.clone(),
        version: row.version.clone(),
        cells: cells.collect(),
        labels: Labels::default(),
        owners: Vec::new(),
    };
    encode(&beginning, false)
}

fn encode(row: &Row, is_whole: bool) -> Vec<u8> {
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
        is_whole,
    };
    // Texts, booleans and lists of them can always be encoded as JSON.
    serde_json::to_vec(&written).unwrap_or_default()
}

/// Reads a row; `None` if it does not fit the schema.
pub(super) fn read(schema: &Schema, bytes: &[u8]) -> Option<Content> {
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
    let row = Row {
        key: written.key.parse::<ObjectKey>().ok()?,
        uid: written.uid.into(),
        version: written.version.into(),
        cells: cells.collect::<Option<_>>()?,
        labels: labels.collect::<Labels>(),
        owners: owners.collect(),
    };
    let is_whole = written.is_whole;
    Some(Content { row, is_whole })
}

/// Reads the whole row from the JSON of its object; `None` if it is not an object.
pub(super) fn of_object(schema: &Schema, json: &[u8]) -> Option<Row> {
    let object = RawObject::parse(json, schema.gvk()).ok()?;
    Some(Row::of(schema, &CachedObject::new(object), json).0)
}

/// Returns whether a query needs more of a row than the fields that every kind has.
pub(super) fn needs_whole(plan: &Plan) -> bool {
    let tests = plan.filters.iter().flatten().map(|test| &test.target);
    let orders = plan.orders.iter().map(|order| &order.target);
    let summaries = plan.summaries.iter().map(|by| &by.target);
    let mut targets = tests.chain(orders).chain(summaries);
    !plan.words.is_empty()
        || targets.any(|target| !matches!(target, Target::Field(place) if is_base(*place)))
}
