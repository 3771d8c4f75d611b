//! The tables of a kind.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Arg, Dialect};
use crate::field::FieldType;
use crate::schema::Schema;

/// The tables of a kind, whose names end with its number.
///
/// | table | has |
/// |---|---|
/// | `row7` | a row for each object: key, version, a column `f…` for each field with one value |
/// | `json7` | the JSON, by the row's id: rows stay small, so that many are read quickly |
/// | `label7`, `owner7` | labels and owners |
/// | `many7_5` | the values of field 5, which has any number |
/// | `word7` | an index of the words in searchable fields |
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    number: i64,
    dialect: Dialect,
    /// How each field is kept.
    fields: Vec<FieldLayout>,
}

#[derive(Debug, Clone, Copy)]
struct FieldLayout {
    of: FieldType,
    is_many: bool,
    is_searchable: bool,
}

/// The column of a field with one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// What is compared; of a natural text its key.
    pub(crate) compared: String,
    /// What is shown, and searched for parts.
    pub(crate) shown: String,
}

impl Column {
    /// Makes a column that is compared as it is shown.
    pub(super) fn plain(name: &str) -> Self {
        Self {
            compared: name.to_owned(),
            shown: name.to_owned(),
        }
    }

    /// Names the table that has it.
    pub(super) fn of(&self, table: &str) -> Self {
        Self {
            compared: format!("{table}.{}", self.compared),
            shown: format!("{table}.{}", self.shown),
        }
    }
}

impl Layout {
    pub(crate) fn new(number: i64, schema: &Schema, dialect: Dialect) -> Self {
        let fields = schema.fields().iter().map(|field| FieldLayout {
            of: field.field_type(),
            is_many: field.is_many(),
            is_searchable: field.is_searchable(),
        });
        Self {
            number,
            dialect,
            fields: fields.collect(),
        }
    }

    pub(crate) fn number(&self) -> i64 {
        self.number
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn rows(&self) -> String {
        format!("row{}", self.number)
    }

    pub(crate) fn json(&self) -> String {
        format!("json{}", self.number)
    }

    pub(crate) fn labels(&self) -> String {
        format!("label{}", self.number)
    }

    pub(crate) fn owners(&self) -> String {
        format!("owner{}", self.number)
    }

    pub(crate) fn words(&self) -> String {
        format!("word{}", self.number)
    }

    /// Returns what the rows of words are written into.
    pub(crate) fn words_into(&self) -> String {
        match self.dialect {
            Dialect::Sqlite => format!("{} (rowid, words)", self.words()),
            Dialect::Postgres => self.words(),
        }
    }

    /// Returns the rows for the words of an object.
    pub(crate) fn word_rows(
        &self,
        id: i64,
        words: impl Iterator<Item = String>,
    ) -> Vec<Vec<Arg<'static>>> {
        let row = |words: String| vec![Arg::Integer(id), Arg::Text(words.into())];
        match self.dialect {
            Dialect::Sqlite => vec![row(words.collect::<Vec<_>>().join(" "))],
            Dialect::Postgres => {
                let words: BTreeSet<String> = words.collect();
                words.into_iter().map(row).collect()
            }
        }
    }

    /// Returns the column of a table that has the number of the row.
    pub(crate) fn id_of(&self, table: &str) -> &'static str {
        let is_index = self.dialect == Dialect::Sqlite && table == self.words();
        if is_index { "rowid" } else { "id" }
    }

    /// Returns the table of a field that has many values.
    pub(crate) fn many(&self, place: usize) -> String {
        format!("many{}_{place}", self.number)
    }

    pub(crate) fn is_many(&self, place: usize) -> bool {
        self.fields[place].is_many
    }

    pub(crate) fn is_searchable(&self) -> bool {
        self.fields.iter().any(|field| field.is_searchable)
    }

    pub(crate) fn type_of(&self, place: usize) -> FieldType {
        self.fields[place].of
    }

    pub(crate) fn is_natural(&self, place: usize) -> bool {
        self.fields[place].of == FieldType::Natural
    }

    /// Returns the places of the searchable fields.
    pub(crate) fn searchable(&self) -> impl Iterator<Item = usize> {
        let fields = self.fields.iter().enumerate();
        let fields = fields.filter(|(_, field)| field.is_searchable);
        fields.map(|(place, _)| place)
    }

    /// Returns the places of fields, by whether they have many values.
    pub(crate) fn places(&self, is_many: bool) -> impl Iterator<Item = usize> {
        let fields = self.fields.iter().enumerate();
        fields
            .filter(move |(_, field)| field.is_many == is_many)
            .map(|(place, _)| place)
    }

    /// Returns the column of a field that has one value.
    pub(crate) fn column(&self, place: usize) -> Column {
        column(self.fields[place].of, &format!("f{place}"))
    }

    /// Returns the column of the table of a field that has many values.
    pub(crate) fn many_column(&self, place: usize) -> Column {
        column(self.fields[place].of, "value")
    }

    /// Returns the names of all tables.
    pub(crate) fn tables(&self) -> Vec<String> {
        let mut tables = vec![self.rows(), self.json(), self.labels(), self.owners()];
        tables.extend(self.places(true).map(|place| self.many(place)));
        if self.is_searchable() {
            tables.push(self.words());
        }
        tables
    }

    /// Returns the statements that make the tables in SQLite.
    pub(crate) fn create(&self) -> String {
        let mut sql = String::new();
        let rows = self.rows();
        let columns: Vec<String> = self
            .places(false)
            .flat_map(|place| self.columns(place))
            .collect();
        let columns = columns.join(", ");
        let json = self.json();
        let (labels, owners) = (self.labels(), self.owners());
        // Writing to a string does not fail.
        let _ = write!(
            sql,
            "CREATE TABLE {rows} (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, version TEXT NOT NULL, {columns});
             CREATE TABLE {json} (id INTEGER PRIMARY KEY, json BLOB NOT NULL);
             CREATE TABLE {labels} (id INTEGER NOT NULL, label TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (id, label)) WITHOUT ROWID;
             CREATE INDEX {labels}_by ON {labels} (label, value, id);
             CREATE TABLE {owners} (id INTEGER NOT NULL, uid TEXT NOT NULL, controls INTEGER NOT NULL, PRIMARY KEY (id, uid)) WITHOUT ROWID;
             CREATE INDEX {owners}_by ON {owners} (uid, id);"
        );
        for place in self.places(false) {
            let Column { compared, .. } = self.column(place);
            // With what decides at last, so that a page is read from the index in its order.
            let last = ["f0", "f1k"].into_iter().filter(|last| *last != compared);
            let keys: Vec<&str> = std::iter::once(compared.as_str()).chain(last).collect();
            let keys = keys.join(", ");
            let _ = write!(sql, "CREATE INDEX {rows}_{place} ON {rows} ({keys});");
        }
        for place in self.places(true) {
            let (many, columns) = (self.many(place), self.many_columns(place).join(", "));
            let Column { compared, .. } = self.many_column(place);
            let _ = write!(
                sql,
                "CREATE TABLE {many} (id INTEGER NOT NULL, {columns}, PRIMARY KEY (id, {compared})) WITHOUT ROWID;
                 CREATE INDEX {many}_by ON {many} ({compared}, id);"
            );
        }
        if self.is_searchable() {
            let words = self.words();
            // The words are taken from the fields here, so that all databases find the same.
            let _ = write!(
                sql,
                "CREATE VIRTUAL TABLE {words} USING fts5(words, content='', contentless_delete=1, detail='none', tokenize='ascii');"
            );
        }
        sql
    }

    fn columns(&self, place: usize) -> Vec<String> {
        typed(self.fields[place].of, &self.column(place))
    }

    fn many_columns(&self, place: usize) -> Vec<String> {
        typed(self.fields[place].of, &self.many_column(place))
    }
}

fn column(of: FieldType, name: &str) -> Column {
    let shown = name.to_owned();
    let compared = match of {
        FieldType::Natural => format!("{name}k"),
        _ => shown.clone(),
    };
    Column { compared, shown }
}

fn typed(of: FieldType, column: &Column) -> Vec<String> {
    let sql_type = match of {
        FieldType::Text | FieldType::Natural => "TEXT",
        FieldType::Integer | FieldType::Boolean | FieldType::Time => "INTEGER",
        FieldType::Real => "REAL",
        FieldType::Quantity | FieldType::Ip => "BLOB",
    };
    let mut columns = vec![format!("{} {sql_type}", column.shown)];
    if column.compared != column.shown {
        columns.push(format!("{} BLOB", column.compared));
    }
    columns
}
