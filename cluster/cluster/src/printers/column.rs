//! Columns of a table.
//!
//! Source of those of custom resources: `tableconvertor` in
//! `k8s.io/apiextensions-apiserver/pkg/registry/customresource`.

use lariat_apimachinery::kinds::{self, Resource};
use lariat_apimachinery::structural::json_path::JsonPath;
use serde_json::{Value, json};

use super::source::{self, Source};

/// A column of a table.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// The type of the cells, as clients read it: `string`, `integer`, `date` …
    pub(super) kind: String,
    pub(super) format: String,
    pub(super) description: String,
    /// 0 for columns that are always shown; others are for `-o wide`.
    pub(super) priority: i32,
    pub(super) source: Source,
}

const NAME_DOC: &str = "Name must be unique within a namespace. Is required when creating \
    resources, although some resources may allow a client to request the generation of an appropriate \
    name automatically. Name is primarily intended for creation idempotence and configuration \
    definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

const CREATED_DOC: &str = "CreationTimestamp is a timestamp representing the server time \
    when this object was created. It is not guaranteed to be set in happens-before order across \
    separate operations. Clients may not set this value. It is represented in RFC3339 form and is in \
    UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// Returns the columns of a custom resource: the name, and those of its CRD or the age.
pub(super) fn of_definition(resource: &Resource) -> Vec<Column> {
    let mut columns = vec![Column::name()];
    if resource.columns.is_empty() {
        // The age is a column like those of CRDs, and null where there is no time.
        columns.push(Column::age("date"));
        columns[1].source.missing = Value::Null;
    }
    columns.extend(resource.columns.iter().map(Column::defined));
    columns
}

/// Returns the columns of a scale: how many replicas are wanted, and how many there are.
///
/// Source: `scaleColumnDefinitions` in `k8s.io/kubernetes/pkg/printers/internalversion`, and the columns that the
/// handler of custom resources gives to scales.
pub(super) fn of_scale(custom: bool) -> Vec<Column> {
    let (desired, available) = if custom {
        ("Number of desired replicas", "Number of actual replicas")
    } else {
        (
            "replicas is the desired number of instances for the scaled object.",
            "replicas is the actual number of observed instances of the scaled object.",
        )
    };
    let replicas = |name, part, description: &str| {
        let path = JsonPath::parse(&format!(".{part}.replicas"));
        let path = path.expect("two members are a path");
        // A Scale has no member for 0 replicas that are wanted.
        let missing = if custom { Value::Null } else { 0.into() };
        let source = Source::of_path(path, source::integer, missing);
        Column {
            description: description.to_owned(),
            ..Column::new(name, "integer", source)
        }
    };
    let mut name = Column::name();
    if !custom {
        name.format.clear();
    }
    vec![
        name,
        replicas("Desired", "spec", desired),
        replicas("Available", "status", available),
        Column::age(if custom { "date" } else { "string" }),
    ]
}

/// Returns the columns of a kind of which nothing else is known: name and age.
#[cfg(not(feature = "printers"))]
pub(super) fn generic() -> Vec<Column> {
    vec![Column::name(), Column::age("date")]
}

impl Column {
    /// Creates a built-in column; name and age have the API types' descriptions.
    pub(super) fn new(name: &str, kind: &str, source: Source) -> Self {
        let (format, description) = match name {
            "Name" => ("name", NAME_DOC),
            "Age" | "Created At" => ("", CREATED_DOC),
            _ => ("", ""),
        };
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: format.to_owned(),
            description: description.to_owned(),
            priority: 0,
            source,
        }
    }

    /// Creates the column with the names of the objects.
    pub(super) fn name() -> Self {
        let source = Source::of_path(metadata("name"), source::text, "");
        Self::new("Name", "string", source)
    }

    /// Creates the column with the ages of the objects.
    pub(super) fn age(kind: &str) -> Self {
        let created = metadata("creationTimestamp");
        let source = Source::of_path(created, source::since, "<unknown>");
        Self::new("Age", kind, source)
    }

    /// Creates a column of a CRD; a value of another type prints as null.
    fn defined(column: &kinds::Column) -> Self {
        Self {
            name: column.name.clone(),
            kind: column.kind.clone(),
            format: column.format.clone(),
            description: column.description.clone(),
            priority: column.priority,
            source: Source::of_path(
                column.path.clone(),
                source::function_of(&column.kind),
                Value::Null,
            ),
        }
    }

    /// Returns the definition of the column, as a table carries it.
    pub(super) fn definition(&self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format,
            "description": self.description, "priority": self.priority,
        })
    }
}

fn metadata(member: &str) -> JsonPath {
    let path = format!(".metadata.{member}");
    JsonPath::parse(&path).expect("two members are a path")
}
