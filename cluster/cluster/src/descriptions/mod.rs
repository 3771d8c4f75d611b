//! Kubernetes' documentation of its types and fields.
//!
//! A test compares it with the schemas in k8s-openapi, which it is made from. It is read where it is needed, and not kept:
//! most programs never ask for it.

#[cfg(feature = "printers")]
use std::collections::HashMap;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::{Map, Value};

/// Written by `tests/api/descriptions.rs`, which describes the format.
const COMPRESSED: &[u8] = include_bytes!("descriptions.gz");

/// Whether there are descriptions.
pub(crate) const PRESENT: bool = true;

/// Adds descriptions to schemas of built-in types, by the names of the types.
pub(crate) fn add(schemas: &mut Map<String, Value>) {
    let text = expand();
    for described in all(&text) {
        let Some(schema) = schemas.get_mut(described.of) else {
            continue;
        };
        let place = match described.field {
            Some(field) => schema
                .get_mut("properties")
                .and_then(|all| all.get_mut(field)),
            None => Some(schema),
        };
        if let Some(place) = place {
            place["description"] = described.text().into();
        }
    }
}

/// Returns the descriptions of fields, given as type and name.
///
/// Types are named without the prefix `io.k8s.api.`.
#[cfg(feature = "printers")]
pub(crate) fn of_fields<'a>(
    wanted: impl Iterator<Item = (&'a str, &'a str)>,
) -> HashMap<(&'a str, &'a str), String> {
    // From each key to itself: a part of the text does not live as long as the keys that are returned.
    let wanted: HashMap<(&str, &str), (&'a str, &'a str)> =
        wanted.map(|each| (each, each)).collect();
    let text = expand();
    let found = all(&text).filter_map(|described| {
        let of = described.of.strip_prefix("io.k8s.api.")?;
        let key = wanted.get(&(of, described.field?))?;
        Some((*key, described.text()))
    });
    found.collect()
}

/// A type or a field with its description, which is still escaped.
#[derive(Debug)]
struct Described<'a> {
    of: &'a str,
    field: Option<&'a str>,
    escaped: &'a str,
}

impl Described<'_> {
    fn text(&self) -> String {
        let mut text = String::with_capacity(self.escaped.len());
        let mut chars = self.escaped.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => text.push(match chars.next() {
                    Some('n') => '\n',
                    other => other.unwrap_or_default(),
                }),
                c => text.push(c),
            }
        }
        text
    }
}

fn expand() -> String {
    let mut text = String::new();
    GzDecoder::new(COMPRESSED)
        .read_to_string(&mut text)
        .expect("the build script compressed a text");
    text
}

/// Iterates over everything that has a description.
fn all(text: &str) -> impl Iterator<Item = Described<'_>> {
    let mut of = "";
    text.lines().filter_map(move |line| {
        let (name, escaped) = line.split_once('\t')?;
        let field = name.strip_prefix(' ');
        if field.is_none() {
            of = name;
        }
        (!escaped.is_empty()).then_some(Described { of, field, escaped })
    })
}

#[cfg(test)]
mod tests {
    use lariat_apimachinery::kinds::{Kinds, TableId};
    use lariat_apimachinery::schema::describe::{self, Describer};

    use super::*;

    #[test]
    fn every_built_in_kind_is_described() {
        let catalog = Kinds::new(|_| TableId(0)).catalog();
        let mut describer = Describer::new();
        for resource in catalog.all() {
            describer.kind(&resource.api_version(), &resource.kind);
        }
        let mut schemas = describer.finish();
        add(&mut schemas);
        for resource in catalog.all() {
            let name = describe::name(&resource.api_version(), &resource.kind);
            let schema = &schemas[&name.expect("it is in the table")];
            assert!(schema["description"].is_string(), "{schema}");
            let fields = schema["properties"].as_object().expect("it has fields");
            // A field without a description is one of a type that has none.
            let described = fields
                .values()
                .filter(|field| field["description"].is_string());
            assert!(described.count() + 1 >= fields.len(), "{schema}");
        }
        let metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
        let created = &schemas[metadata]["properties"]["creationTimestamp"]["description"];
        let created = created.as_str().expect("it is described");
        assert!(
            created.contains(" in UTC.\n\nPopulated by the system."),
            "{created}"
        );
    }
}
