//! Writes tables in the form in which clients get them.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_mut};
use serde_json::{Value, json};

use super::builtin;
use super::column::{self, Column};
use super::include::Include;
use super::source::Row;
use crate::clock::Clock;
use crate::store::{Draft, EventType, Stored};
use crate::strategy::in_second;
use crate::wire::negotiate::MetaVersion;

/// Writes tables of one resource.
#[derive(Debug)]
pub(crate) struct Table {
    resource: Arc<Resource>,
    /// `"kind":…,"apiVersion":…` of the objects in the rows.
    head: String,
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
            head: resource.head(),
            columns,
            version,
            include,
            clock,
        }
    }

    /// Returns a writer like this one for the scales of the resource.
    pub(crate) fn of_scale(&self) -> Self {
        Self {
            resource: Arc::clone(&self.resource),
            head: r#""kind":"Scale","apiVersion":"autoscaling/v1""#.to_owned(),
            columns: column::of_scale(self.resource.rules.custom).into(),
            ..*self
        }
    }

    /// Returns whether the columns are those of kinds that have none of their own.
    pub(crate) fn has_default_columns(&self) -> bool {
        // As rest.NewDefaultTableConvertor; a custom kind may have given its columns the same names.
        !self.resource.rules.custom
            && self.columns.len() == 2
            && self.columns[1].name == "Created At"
    }

    /// Writes a table up to its first row; `metadata` is the JSON inside the braces.
    pub(crate) fn opening(&self, metadata: &str, with_columns: bool) -> Vec<u8> {
        let columns = if with_columns {
            // A row of this kind has a cell more than the table has columns.
            let is_short = self.resource.plural == "ipaddresses" && !self.resource.rules.custom;
            let count = self.columns.len() - usize::from(is_short);
            let shown = self.columns.iter().take(count);
            shown.map(Column::definition).collect()
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
        let object = self.internal(stored).unwrap_or_else(|| stored.object());
        let object = Value::Object(object);
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
                json.extend_from_slice(&self.metadata(stored));
                json.push(b'}');
            }
            Include::Object => {
                json.push(b'{');
                json.extend_from_slice(self.head.as_bytes());
                match unversioned(stored) {
                    Some(object) => json.extend_from_slice(&content_of(object)),
                    None => json.extend_from_slice(stored.content()),
                }
            }
        }
        json.push(b'}');
        json
    }

    /// Writes the metadata of a row, as the internal type of the kind has them.
    fn metadata<'a>(&self, stored: &'a Stored) -> Cow<'a, [u8]> {
        let object = self.internal(stored).or_else(|| unversioned(stored));
        let Some(mut object) = object else {
            return Cow::Borrowed(stored.metadata());
        };
        let metadata = object.remove("metadata").unwrap_or_default();
        Cow::Owned(format!(r#","metadata":{metadata}"#).into_bytes())
    }

    /// Returns an object as Go's internal type of its kind has it, where the version has annotations for members.
    fn internal(&self, stored: &Stored) -> Option<Object> {
        let Resource {
            group,
            version,
            plural,
            ..
        } = &*self.resource;
        match (group.as_str(), version.as_str(), plural.as_str()) {
            ("apps", _, "daemonsets") => {
                let mut object = stored.object();
                let metadata = metadata_mut(&mut object);
                if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                    annotations.remove("deprecated.daemonset.template.generation");
                    if annotations.is_empty() {
                        metadata.remove("annotations");
                    }
                }
                Some(object)
            }
            ("autoscaling", "v1", "horizontalpodautoscalers") => {
                in_second(&self.resource, &stored.object())
            }
            _ => None,
        }
    }

    /// Sorts the objects of a list as their printer does.
    ///
    /// Source: `printFlowSchemaList`.
    pub(crate) fn sort(&self, objects: &mut [Arc<Stored>]) {
        if self.resource.rules.custom || self.resource.plural != "flowschemas" {
            return;
        }
        objects.sort_by_cached_key(|stored| {
            let object = Value::Object(stored.object());
            let precedence = object.pointer("/spec/matchingPrecedence");
            let precedence = precedence.and_then(Value::as_i64).unwrap_or_default();
            (precedence, stored.key().name().to_owned())
        });
    }

    /// Writes a table of one object.
    pub(crate) fn single(&self, stored: &Stored, with_columns: bool) -> Vec<u8> {
        let metadata = match stored.revision() {
            // What a dry run created has no version.
            0 => String::new(),
            revision => format!(r#""resourceVersion":"{revision}""#),
        };
        let mut json = self.opening(&metadata, with_columns);
        json.extend_from_slice(&self.row(stored));
        json.extend_from_slice(b"]}");
        json
    }

    /// Creates the object that stands for a revision in a bookmark.
    pub(crate) fn bookmark(&self, revision: u64, ends_state: bool) -> Stored {
        let mut metadata = json!({});
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

/// Returns what a dry run created, which has no version; `None` for what is stored.
fn unversioned(stored: &Stored) -> Option<Object> {
    (stored.revision() == 0).then(|| {
        let mut object = stored.object();
        metadata_mut(&mut object).remove("resourceVersion");
        object
    })
}

/// Writes an object behind its type, up to the last brace.
fn content_of(mut object: Object) -> Vec<u8> {
    object.retain(|member, _| member != "kind" && member != "apiVersion");
    let text = Value::Object(object).to_string();
    format!(",{}", &text[1..]).into_bytes()
}
