//! Objects as rows of a `Table`, which is how kubectl asks for them.

mod age;
mod autoscaling;
mod cluster;
mod column;
mod custom;
mod devices;
mod networking;
mod pods;
mod policy;
mod printers;
mod row;
mod storage;
#[cfg(test)]
mod tests;
mod workloads;

use std::sync::Arc;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::status::ApiError;
use crate::store::{Draft, EventType, Stored};
use crate::wire::negotiate::MetaVersion;
use crate::wire::query::Query;
use column::Printer;
use row::{Cells, Row};

/// How much of an object its row carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Include {
    None,
    #[default]
    Metadata,
    Object,
}

/// Writes tables of one resource.
#[derive(Debug)]
pub(crate) struct Table {
    resource: Arc<Resource>,
    version: MetaVersion,
    include: Include,
    clock: Clock,
}

/// Checks the parameters of a table.
pub(crate) fn check(query: &Query) -> Result<(), ApiError> {
    Include::of(query).map(drop)
}

impl Include {
    fn of(query: &Query) -> Result<Self, ApiError> {
        Ok(match query.text("includeObject") {
            None | Some("Metadata") => Self::Metadata,
            Some("None") => Self::None,
            Some("Object") => Self::Object,
            Some(other) => {
                let why = "must be 'Metadata', 'Object', 'None', or empty";
                let cause = StatusCause::invalid("includeObject", &other.into(), why);
                return Err(ApiError::bad_request(format!(
                    "Unable to convert to Table as requested: {}",
                    cause.text()
                )));
            }
        })
    }
}

impl Table {
    /// Returns what writes the tables a query asks for, whose parameters were checked.
    pub(crate) fn new(
        resource: &Arc<Resource>,
        version: MetaVersion,
        query: &Query,
        clock: Clock,
    ) -> Self {
        Self {
            resource: Arc::clone(resource),
            version,
            include: Include::of(query).unwrap_or_default(),
            clock,
        }
    }

    /// Writes a table up to its first row; `metadata` is the JSON inside the braces.
    pub(crate) fn opening(&self, metadata: &str, with_columns: bool) -> Vec<u8> {
        let columns = if with_columns {
            Value::Array(self.definitions())
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
        let row = Row::new(&object, self.clock.timestamp());
        let mut json = br#"{"cells":"#.to_vec();
        json.extend_from_slice(Value::Array(self.cells(row)).to_string().as_bytes());
        if let Some(conditions) = self.conditions(row) {
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

    /// Makes the object that stands for a revision in a bookmark.
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

    fn definitions(&self) -> Vec<Value> {
        match self.printer() {
            Some(printer) => printer
                .columns
                .iter()
                .map(|column| column.definition())
                .collect(),
            None => custom::definitions(&self.resource),
        }
    }

    fn cells(&self, row: Row<'_>) -> Cells {
        match self.printer() {
            Some(printer) => (printer.cells)(row),
            None => custom::cells(&self.resource, row),
        }
    }

    fn conditions(&self, row: Row<'_>) -> Option<Value> {
        let is_pod = self.resource.group.is_empty() && self.resource.plural == "pods";
        is_pod.then(|| pods::conditions(row)).flatten()
    }

    fn printer(&self) -> Option<Printer> {
        let resource = &self.resource;
        let built_in = !resource.rules.custom;
        built_in.then(|| printers::printer(&resource.group, &resource.plural))
    }
}
