//! Printer columns of CRDs as fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition,
};

use crate::field::{Field, FieldType};

/// The path of the labels, which queries use without a field.
const LABELS: &str = "metadata.labels";

/// The fields of a version's printer columns.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) fields: Vec<Field>,
    /// The names of columns that cannot be fields, with the reasons.
    pub(crate) skipped: Vec<(String, &'static str)>,
}

impl Columns {
    /// Reads the columns of a version; `None` if the CRD does not have it.
    pub(crate) fn of(crd: &CustomResourceDefinition, version: &str) -> Option<Self> {
        let mut versions = crd.spec.versions.iter();
        let version = versions.find(|of| of.name == version)?;
        let mut columns = Self::default();
        for column in version.additional_printer_columns.iter().flatten() {
            match field(column) {
                Ok(field) => columns.fields.extend(field),
                Err(reason) => columns.skipped.push((column.name.clone(), reason)),
            }
        }
        Some(columns)
    }
}

/// Converts a column to a field; `None` for a label, which needs no field.
fn field(column: &CustomResourceColumnDefinition) -> Result<Option<Field>, &'static str> {
    let of = match column.type_.as_str() {
        "integer" => FieldType::Integer,
        "number" => FieldType::Real,
        "string" => FieldType::Text,
        "boolean" => FieldType::Boolean,
        "date" => FieldType::Time,
        // An array or object has no order, so it cannot be a column of the table.
        _ => return Err("its type is not integer, number, string, boolean or date"),
    };
    let path = path(&column.json_path)?;
    let below = path.strip_prefix(LABELS);
    // Labels have a table of their own, so a column for one would be stored twice.
    if below.is_some_and(|below| below.starts_with(['.', '['])) {
        return Ok(None);
    }
    let field = Field::path(&path, of);
    field.map(Some).map_err(|_| "its jsonPath is not supported")
}

/// Converts a JSONPath to the text of a [`Path`](crate::Path).
///
/// Forms that a path would read as names of members, such as slices, are refused.
fn path(json_path: &str) -> Result<String, &'static str> {
    let mut path = String::with_capacity(json_path.len());
    // Kubernetes accepts the root with and without `$`.
    let trimmed = json_path.strip_prefix('$').unwrap_or(json_path);
    let mut rest = trimmed.strip_prefix('.').unwrap_or(trimmed);
    while !rest.is_empty() {
        if rest.starts_with('[') {
            let end = bracket(rest).ok_or("its jsonPath has brackets that are not supported")?;
            path.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        if !path.is_empty() {
            rest = rest.strip_prefix('.').ok_or("its jsonPath lacks a dot")?;
        }
        let (name, after) = member(rest);
        if name.is_empty() || name.contains(['[', ']', '{', '}', '*', '\\']) {
            return Err("its jsonPath has a member that is not supported");
        }
        // An escaped dot: the name needs brackets in a path.
        if name.contains('.') {
            path.push_str(&format!("[{name}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&name);
        }
        rest = after;
    }
    Ok(path)
}

/// Reads the name of a member; returns it and the rest.
///
/// A dot after a backslash is part of the name.
fn member(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut rest = text;
    while let Some(end) = rest.find(['.', '[', '\\']) {
        name.push_str(&rest[..end]);
        rest = &rest[end..];
        let Some(after) = rest.strip_prefix("\\.") else {
            return (name, rest);
        };
        name.push('.');
        rest = after;
    }
    name.push_str(rest);
    (name, "")
}

/// Returns where brackets end, if they mean the same in a [`Path`](crate::Path).
///
/// That is so for a number, `*`, a quoted name, and an equality.
fn bracket(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('[')?;
    let end = if inside.starts_with("?(") {
        inside.find(")]")? + 1
    } else if let Some(quote) = inside.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        1 + inside[1..].find(quote)? + 1
    } else {
        let end = inside.find(']')?;
        let is_number = end > 0 && inside[..end].bytes().all(|byte| byte.is_ascii_digit());
        // A slice, a union or a negative index: a path would read it as the name of a member.
        if !is_number && inside[..end] != *"*" {
            return None;
        }
        end
    };
    inside[end..].starts_with(']').then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn columns(columns: &Json) -> Columns {
        let json = json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets"},
                "versions": [
                    {"name": "v1", "served": true, "storage": false},
                    {"name": "v2", "served": true, "storage": true, "additionalPrinterColumns": columns},
                ],
            },
        });
        let definition = serde_json::from_value(json).unwrap();
        assert!(Columns::of(&definition, "v3").is_none());
        assert!(Columns::of(&definition, "v1").unwrap().fields.is_empty());
        Columns::of(&definition, "v2").unwrap()
    }

    fn column(of: &str, path: &str) -> Columns {
        columns(&json!([{"name": "C", "type": of, "jsonPath": path}]))
    }

    #[test]
    fn columns_are_fields_that_are_named_by_their_paths() {
        for (of, path, name, field_type) in [
            (
                "integer",
                ".spec.replicas",
                "spec.replicas",
                FieldType::Integer,
            ),
            ("number", ".spec.ratio", "spec.ratio", FieldType::Real),
            ("string", "$.spec.color", "spec.color", FieldType::Text),
            ("boolean", ".spec.on", "spec.on", FieldType::Boolean),
            ("date", ".status.last", "status.last", FieldType::Time),
            (
                "string",
                ".spec.list[0].a",
                "spec.list[0].a",
                FieldType::Text,
            ),
            (
                "string",
                ".spec.list[*].a",
                "spec.list[*].a",
                FieldType::Text,
            ),
            (
                "string",
                ".metadata.annotations.a\\.b/c",
                "metadata.annotations[a.b/c]",
                FieldType::Text,
            ),
            ("string", ".spec['a.b'].c", "spec['a.b'].c", FieldType::Text),
            (
                "string",
                ".status.conditions[?(@.type==\"Ready\")].status",
                "status.conditions[?(@.type==\"Ready\")].status",
                FieldType::Text,
            ),
        ] {
            let columns = column(of, path);
            assert_eq!(columns.skipped, [], "{path}");
            let field = &columns.fields[0];
            assert_eq!((field.name(), field.field_type()), (name, field_type));
            assert_eq!(field.is_many(), path.contains("[*]"));
        }
    }

    #[test]
    fn columns_that_cannot_be_read_are_skipped_with_a_reason() {
        for path in [
            "",
            ".",
            "..a",
            ".a..b",
            ".a[-1:]",
            ".a[0:2]",
            ".a[0,1]",
            ".a[b]",
            ".a[",
            ".a.*",
            ".a[?(@.b>1)]",
            "{.a}",
            ".a\\nb",
            ".a[0]b",
        ] {
            let columns = column("string", path);
            assert!(columns.fields.is_empty(), "{path}");
            assert_eq!(columns.skipped.len(), 1, "{path}");
        }
        assert_eq!(column("array", ".a").skipped.len(), 1);
    }

    #[test]
    fn a_label_needs_no_field() {
        for path in [
            ".metadata.labels.app",
            ".metadata.labels['a.b']",
            ".metadata.labels.a\\.b",
        ] {
            let columns = column("string", path);
            assert!(columns.fields.is_empty() && columns.skipped.is_empty());
        }
        assert_eq!(column("string", ".metadata.labelsx").fields.len(), 1);
    }
}
