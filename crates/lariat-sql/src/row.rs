//! What is indexed of one object.

use std::fmt;
use std::sync::Arc;

use lariat_cache::CachedObject;
use lariat_core::{Labels, ObjectKey};
use serde_json::Value as Json;

use crate::field::Value;
use crate::schema::Schema;

/// What is indexed of one object: a cell for each field of the [`Schema`], labels and owners.
#[derive(Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Arc<str>,
    /// The object's resource version.
    pub(crate) version: Arc<str>,
    /// The values of each field: one at most, unless the field has many.
    pub(crate) cells: Vec<Vec<Value>>,
    pub(crate) labels: Labels,
    pub(crate) owners: Vec<Owner>,
}

/// A reference to an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: String,
    pub(crate) is_controller: bool,
}

/// A field that an object has no usable value for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unindexable {
    /// The place of the field in the schema.
    pub(crate) place: usize,
    pub(crate) why: &'static str,
}

impl fmt::Debug for Row {
    /// Shows no values, for they may be those of a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row")
            .field("key", &self.key)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Row {
    /// Reads a row from an object and its parsed JSON.
    ///
    /// What cannot be indexed is left without a value.
    pub(crate) fn read(
        schema: &Schema,
        object: &CachedObject,
        json: &Json,
    ) -> (Self, Vec<Unindexable>) {
        let mut unindexable = Vec::new();
        let fields = schema.fields().iter().enumerate();
        let cells = fields.map(|(place, field)| {
            field.read(json).unwrap_or_else(|why| {
                unindexable.push(Unindexable { place, why });
                Vec::new()
            })
        });
        let row = Self {
            key: object.key().clone(),
            uid: object.uid().to_string().into(),
            version: object.version().to_string().into(),
            cells: cells.collect(),
            labels: object.labels().clone(),
            owners: owners(json),
        };
        (row, unindexable)
    }
}

fn owners(json: &Json) -> Vec<Owner> {
    let references = json["metadata"]["ownerReferences"].as_array();
    let owner = |reference: &Json| {
        Some(Owner {
            uid: reference["uid"].as_str()?.to_owned(),
            is_controller: reference["controller"] == true,
        })
    };
    references.into_iter().flatten().filter_map(owner).collect()
}
