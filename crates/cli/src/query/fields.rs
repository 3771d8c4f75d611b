//! The fields to index: those that the query names.

use anyhow::{Result, bail};
use lariat_sql::{Field, FieldType, Subject};
use serde_json::Value as Json;

use super::columns::Column;
use super::openapi::Schemas;
use super::options::Options;

/// What every kind has.
const BASE: [&str; 4] = [
    "metadata.namespace",
    "metadata.name",
    "metadata.creationTimestamp",
    "metadata.uid",
];

/// The name of the field for full-text search.
const SEARCHED: &str = "name and labels";

/// Returns the fields of a query, with the given types or those of the schemas.
pub(super) fn fields(
    options: &Options,
    columns: &[Column],
    schemas: &Schemas,
) -> Result<Vec<Field>> {
    for column in columns.iter().filter(|column| column.is_given) {
        schemas.check(&column.path)?;
    }
    let mut typed: Vec<(String, FieldType)> = Vec::new();
    for (name, of) in &options.types {
        if is_base(name) {
            // The cache adds these columns to every kind itself.
            bail!("--field {name}: every kind has this field, of a type of its own");
        }
        if typed.iter().any(|(other, _)| other == name) {
            bail!("--field {name} is given twice");
        }
        // A given type overrides that of the schema.
        typed.push((name.clone(), *of));
    }
    for subject in options.query.subjects() {
        let Subject::Field(name) = subject else {
            continue;
        };
        // Labels need no field: the cache has a table of all of them.
        if !is_base(name) && !typed.iter().any(|(other, _)| other == name) {
            let of = schemas.type_of(&name.parse()?)?;
            typed.push((name.clone(), of));
        }
    }
    let mut fields = Vec::with_capacity(typed.len() + 1);
    for (name, of) in typed {
        let field = Field::path(&name, of)?.named(&name);
        let is_searched = options.has_search() && of.is_text();
        fields.push(if is_searched {
            field.searchable()
        } else {
            field
        });
    }
    if options.has_search() {
        fields.push(searched());
    }
    Ok(fields)
}

fn is_base(name: &str) -> bool {
    BASE.contains(&name)
}

/// Returns the field that is always searched for words.
fn searched() -> Field {
    let words = |object: &Json| {
        let metadata = &object["metadata"];
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let mut words: Vec<Json> = labels.map(|(_, value)| value.clone()).collect();
        words.push(metadata["name"].clone());
        Some(words.into())
    };
    Field::computed(SEARCHED, FieldType::Text, words)
        .many()
        .searchable()
}
