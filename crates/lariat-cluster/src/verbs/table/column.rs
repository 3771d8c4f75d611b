//! Columns of a table, and which kinds have which.

use serde_json::{Value, json};

use super::row::{Cells, Row};

/// A column of a built-in kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    /// 0 is shown always, 1 only in wide output.
    priority: u8,
}

/// How the objects of a kind become rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Printer {
    pub(super) columns: &'static [Column],
    pub(super) cells: fn(Row<'_>) -> Cells,
}

/// A column with texts.
pub(super) const fn text(name: &'static str) -> Column {
    typed(name, "string")
}

/// A column with numbers.
pub(super) const fn number(name: &'static str) -> Column {
    typed(name, "integer")
}

/// A column with truth values.
pub(super) const fn flag(name: &'static str) -> Column {
    typed(name, "boolean")
}

/// A column with texts that only wide output shows.
pub(super) const fn wide(name: &'static str) -> Column {
    Column {
        priority: 1,
        ..typed(name, "string")
    }
}

const fn typed(name: &'static str, kind: &'static str) -> Column {
    Column {
        name,
        kind,
        priority: 0,
    }
}

/// The column with the names of the objects.
pub(super) const NAME: Column = text("Name");

/// The column that says how long they have existed.
pub(super) const AGE: Column = text("Age");

/// The column with the time of their creation.
pub(super) const CREATED_AT: Column = typed("Created At", "date");

pub(super) const NAME_DOC: &str = "Name must be unique within a namespace. Is required when creating \
    resources, although some resources may allow a client to request the generation of an appropriate \
    name automatically. Name is primarily intended for creation idempotence and configuration \
    definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

pub(super) const CREATED_DOC: &str = "CreationTimestamp is a timestamp representing the server time \
    when this object was created. It is not guaranteed to be set in happens-before order across \
    separate operations. Clients may not set this value. It is represented in RFC3339 form and is in \
    UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

impl Column {
    /// Returns the definition of the column, as a table carries it.
    pub(super) fn definition(self) -> Value {
        let (format, description) = match self.name {
            "Name" => ("name", NAME_DOC),
            "Age" | "Created At" => ("", CREATED_DOC),
            _ => ("", ""),
        };
        json!({
            "name": self.name, "type": self.kind, "format": format, "description": description,
            "priority": self.priority,
        })
    }
}
