//! The layout of tables: their names and columns.

use std::collections::BTreeSet;

use super::Dialect;
use crate::field::FieldType;
use crate::param::Arg;
use crate::schema::Schema;

/// The tables of a kind, whose names end with the number of the kind.
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
    /// How each field is stored.
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
    /// What is compared; for a natural text its key.
    pub(crate) compared: String,
    /// What is returned, and searched for parts.
    pub(crate) shown: String,
    /// Whether an index contains only the beginnings of values, as they may be long.
    pub(crate) is_long: bool,
}

impl Column {
    /// Creates a column of texts that are compared as they are returned.
    pub(super) fn of_texts(name: &str, dialect: Dialect) -> Self {
        Self {
            compared: name.to_owned(),
            shown: name.to_owned(),
            is_long: dialect == Dialect::Postgres,
        }
    }

    /// Creates a column that a statement computes, so it has no index.
    pub(super) fn computed(name: &str) -> Self {
        Self {
            compared: name.to_owned(),
            shown: name.to_owned(),
            is_long: false,
        }
    }

    /// Qualifies the column by a table.
    pub(super) fn of(&self, table: &str) -> Self {
        Self {
            compared: format!("{table}.{}", self.compared),
            shown: format!("{table}.{}", self.shown),
            is_long: self.is_long,
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

    /// Returns the table and columns into which words are inserted.
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
            // FTS5 splits the words again, at spaces only.
            Dialect::Sqlite => vec![row(words.collect::<Vec<_>>().join(" "))],
            Dialect::Postgres => {
                let words: BTreeSet<String> = words.collect();
                words.into_iter().map(row).collect()
            }
        }
    }

    /// Returns the column of a table that contains the number of the row.
    pub(crate) fn id_of(&self, table: &str) -> &'static str {
        // A virtual table of FTS5 has no column `id`.
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

    /// Returns the positions of the searchable fields.
    pub(crate) fn searchable(&self) -> impl Iterator<Item = usize> {
        let fields = self
            .fields
            .iter()
            .enumerate()
            .filter(|(_, field)| field.is_searchable);
        fields.map(|(place, _)| place)
    }

    /// Returns the positions of fields, by whether they have many values.
    pub(crate) fn places(&self, is_many: bool) -> impl Iterator<Item = usize> {
        let fields = self.fields.iter().enumerate();
        fields
            .filter(move |(_, field)| field.is_many == is_many)
            .map(|(place, _)| place)
    }

    /// Returns the column of a field that has one value.
    pub(crate) fn column(&self, place: usize) -> Column {
        // Kubernetes limits the lengths of namespaces and names.
        let is_long = place > 1 && self.is_long(place);
        column(self.fields[place].of, &format!("f{place}"), is_long)
    }

    /// Returns the column in the table of a field that has many values.
    pub(crate) fn many_column(&self, place: usize) -> Column {
        column(self.fields[place].of, "value", self.is_long(place))
    }

    fn is_long(&self, place: usize) -> bool {
        self.dialect == Dialect::Postgres && self.fields[place].of.is_text()
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
}

fn column(of: FieldType, name: &str, is_long: bool) -> Column {
    let shown = name.to_owned();
    let compared = match of {
        FieldType::Natural => format!("{name}k"),
        _ => shown.clone(),
    };
    Column {
        compared,
        shown,
        is_long,
    }
}
