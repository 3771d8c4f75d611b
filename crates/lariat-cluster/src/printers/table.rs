//! Writes tables in the form in which clients get them.

use std::sync::Arc;

use jiff::Timestamp;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use super::builtin;
use super::column::{self, Column};
use super::include::Include;
use super::source::Row;
use crate::clock::Clock;
use crate::store::{Draft, EventType, Stored};
use crate::wire::negotiate::MetaVersion;

/// Writes tables of one resource.
#[derive(Debug)]
pub(crate) struct Table {
    resource: Arc<Resource>,
    columns: Arc<[Column]>,
    version: MetaVersion,
    include: Include,
    clock: Clock,
}

impl Table {
    /// Creates a writer for a resource; ages are counted from the time of the clock.
    pub(crate) fn new(
        resource: &Arc<Resource>,
        version: MetaVersion,
        include: Include,
        clock: Clock,
    ) -> Self {
        let columns = if resource.rules.custom {
            column::of_definition(resource).into()
        } else {
            builtin::columns(resource)
        };
        Self {
            resource: Arc::clone(resource),
            columns,
            version,
            include,
            clock,
        }
    }

    /// Writes a table up to its first row; `metadata` is the JSON inside the braces.
    pub(crate) fn opening(&self, metadata: &str, with_columns: bool) -> Vec<u8> {
        let columns = if with_columns {
            self.columns.iter().map(Column::definition).collect()
        } else {
            Value::Null
        };
        let version = self.version.api_version();
        let opening =
            format!(r#"{{"kind":"Table","apiVersion":"{version}","metadata":{{{metadata}}},"#);
        [
            opening.as_bytes(),
            br#""columnDefinitions":"#,
            columns.to_string().as_bytes(),
            br#","rows":["#,
        ]
        .concat()
    }

    /// Writes the row of an object.
    pub(crate) fn row(&self, stored: &Stored) -> Vec<u8> {
        let object = Value::Object(stored.object());
        let now = self.clock.timestamp();
        let mut json = br#"{"cells":"#.to_vec();
        json.extend_from_slice(self.cells(&object, now).to_string().as_bytes());
        if let Some(conditions) = builtin::conditions(&self.resource, &object) {
            json.extend_from_slice(br#","conditions":"#);
            json.extend_from_slice(conditions.to_string().as_bytes());
        }
        json.extend_from_slice(br#","object":"#);
        match self.include {
            Include::None => json.extend_from_slice(b"null"),
            Include::Metadata => {
                let head = format!(
                    r#"{{"kind":"PartialObjectMetadata","apiVersion":"{}""#,
                    self.version.api_version()
                );
                json.extend_from_slice(head.as_bytes());
                json.extend_from_slice(stored.metadata());
                json.push(b'}');
            }
            Include::Object => {
                json.push(b'{');
                json.extend_from_slice(self.resource.head().as_bytes());
                json.extend_from_slice(stored.content());
            }
        }
        json.push(b'}');
        json
    }

    /// Writes a table of one object.
    pub(crate) fn single(&self, stored: &Stored, with_columns: bool) -> Vec<u8> {
        let metadata = format!(r#""resourceVersion":"{}""#, stored.revision());
        let mut json = self.opening(&metadata, with_columns);
        json.extend_from_slice(&self.row(stored));
        json.extend_from_slice(b"]}");
        json
    }

    /// Creates the object that stands for a revision in a bookmark.
    pub(crate) fn bookmark(&self, revision: u64, ends_state: bool) -> Stored {
        let mut metadata = json!({"creationTimestamp": null});
        if ends_state {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let mut object = Object::new();
        object.insert("metadata".into(), metadata);
        self.resource.set_type(&mut object);
        Draft::new(&object).stamp(revision, EventType::Modified)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Value {
        let row = Row { object, now };
        let cells = self.columns.iter().map(|column| column.source.cell(row));
        cells.collect()
    }
}
