//! Parses the table of columns.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use lariat_apimachinery::kinds::{Resource, qualified};
use lariat_apimachinery::structural::json_path::JsonPath;
use serde_json::Value;

use super::functions;
use crate::descriptions;
use crate::printers::column::Column;
use crate::printers::source::{self, Function, Source};

/// The columns of resources, by their qualified names.
pub(super) type Columns = HashMap<&'static str, Arc<[Column]>>;

/// The indentation of descriptions in the table of columns.
const INDENT: &str = "    ";

pub(super) const TABLE: &str = include_str!("columns.txt");

pub(super) static COLUMNS: LazyLock<Columns> =
    LazyLock::new(|| parse(TABLE).expect("the table is well-formed, as a test checks"));

/// Returns the columns of a built-in kind.
pub(in crate::printers) fn columns(resource: &Resource) -> Arc<[Column]> {
    columns_of(&resource.group, &resource.plural)
}

pub(super) fn columns_of(group: &str, plural: &str) -> Arc<[Column]> {
    let (own, others) = (qualified(plural, group), format!("*.{group}"));
    let names = [&*own, &*others, "*"];
    let found = names.iter().find_map(|name| COLUMNS.get(*name));
    found.map(Arc::clone).unwrap_or_default()
}

/// Parses a table; the columns of a resource stand below its name.
fn parse(table: &'static str) -> Result<Columns, String> {
    let mut all = Columns::new();
    let described = descriptions::of_fields(references());
    for block in table.split("\n\n") {
        let mut lines = block
            .lines()
            .filter(|line| !line.starts_with('#'))
            .peekable();
        let Some(names) = lines.next() else {
            continue;
        };
        let mut columns = Vec::new();
        while let Some(line) = lines.next() {
            let mut column = column(line)?;
            if let Some(text) = lines.next_if(|line| line.starts_with(INDENT)) {
                column.description = match reference(text) {
                    Some(field) => described.get(&field).cloned().unwrap_or_default(),
                    None => text.trim_start().to_owned(),
                };
            }
            columns.push(column);
        }
        let columns: Arc<[Column]> = columns.into();
        for name in names.split(", ") {
            all.insert(name, Arc::clone(&columns));
        }
    }
    Ok(all)
}

/// Iterates over the fields whose descriptions columns have.
pub(super) fn references() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().filter_map(reference)
}

/// Returns the type and the field whose description a line stands for.
fn reference(line: &'static str) -> Option<(&'static str, &'static str)> {
    line.strip_prefix(INDENT)?
        .strip_prefix('@')?
        .rsplit_once('.')
}

fn column(line: &str) -> Result<Column, String> {
    let parts = line.split("  ").map(str::trim);
    let fields: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    match fields[..] {
        ["Name"] => Ok(Column::name()),
        ["Age"] => Ok(Column::age("string")),
        [name, kind, source] => {
            let wide = kind.strip_suffix(" wide");
            let kind = wide.unwrap_or(kind);
            let named = kind.strip_suffix(" name");
            let column = Column::new(name, named.unwrap_or(kind), parse_source(source)?);
            Ok(Column {
                priority: i32::from(wide.is_some()),
                format: named.map_or(column.format, |_| "name".to_owned()),
                ..column
            })
        }
        _ => Err(format!("not a column: {line}")),
    }
}

/// Parses the alternatives of a source; the last may be a literal default.
fn parse_source(text: &str) -> Result<Source, String> {
    let mut parts: Vec<&str> = text.split(" or ").collect();
    let literal = parts.pop_if(|part| !part.starts_with('.') && !part.ends_with(')'));
    let text = literal.unwrap_or_default();
    let missing: Value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
    let of_value = match missing {
        Value::Number(_) => source::integer,
        Value::Bool(_) => source::boolean,
        _ => source::text,
    };
    let alternatives = parts.into_iter().map(|part| alternative(part, of_value));
    Ok(Source {
        alternatives: alternatives.collect::<Result<_, _>>()?,
        missing,
    })
}

/// Parses a path or a function of one; `of_value` prints a plain path's value.
fn alternative(text: &str, of_value: Function) -> Result<(JsonPath, Function), String> {
    if text.starts_with('.') {
        return Ok((JsonPath::parse(text)?, of_value));
    }
    let call = text.strip_suffix(')').and_then(|call| call.split_once('('));
    let (name, path) = call.ok_or_else(|| format!("neither a path nor a function: {text}"))?;
    let function = functions::named(name).ok_or_else(|| format!("no such function: {name}"))?;
    Ok((JsonPath::parse(path)?, function))
}
