//! The statements that create the tables of a kind.

use std::fmt::Write;

use super::layout::{Column, Layout};
use super::{BEGINNING, Dialect};
use crate::field::FieldType;

/// The column types of a database; texts compare by their bytes.
struct Types {
    text: &'static str,
    integer: &'static str,
    real: &'static str,
    bytes: &'static str,
    /// The type of a row's number.
    id: &'static str,
    /// The clause that makes a table its own index.
    is_index: &'static str,
}

const SQLITE: Types = Types {
    text: "TEXT",
    integer: "INTEGER",
    real: "REAL",
    bytes: "BLOB",
    id: "INTEGER PRIMARY KEY",
    is_index: " WITHOUT ROWID",
};

const POSTGRES: Types = Types {
    text: "text COLLATE \"C\"",
    integer: "bigint",
    real: "double precision",
    bytes: "bytea",
    id: "bigint PRIMARY KEY",
    is_index: "",
};

impl Types {
    fn of(dialect: Dialect) -> &'static Self {
        match dialect {
            Dialect::Sqlite => &SQLITE,
            Dialect::Postgres => &POSTGRES,
        }
    }

    /// Returns the columns of values: as returned and, if that differs, as compared.
    fn columns(&self, of: FieldType, column: &Column) -> Vec<String> {
        let shown = match of {
            FieldType::Text | FieldType::Natural => self.text,
            FieldType::Integer | FieldType::Boolean | FieldType::Time => self.integer,
            FieldType::Real => self.real,
            FieldType::Quantity | FieldType::Ip => self.bytes,
        };
        let mut columns = vec![format!("{} {shown}", column.shown)];
        // Natural texts: a key to compare, and the text to return.
        if column.compared != column.shown {
            columns.push(format!("{} {}", column.compared, self.bytes));
        }
        columns
    }
}

impl Layout {
    /// Returns the statements that create the tables.
    pub(crate) fn create(&self) -> String {
        let mut sql = String::new();
        // Writing to a string does not fail.
        let _ = self.write_rows(&mut sql);
        let _ = self.write_many(&mut sql);
        let _ = self.write_words(&mut sql);
        sql
    }

    fn types(&self) -> &'static Types {
        Types::of(self.dialect())
    }

    fn write_rows(&self, sql: &mut String) -> std::fmt::Result {
        let Types {
            text,
            integer,
            bytes,
            id,
            is_index,
            ..
        } = self.types();
        let (rows, json) = (self.rows(), self.json());
        let (labels, owners) = (self.labels(), self.owners());
        let columns = self
            .places(false)
            .flat_map(|place| {
                self.types()
                    .columns(self.type_of(place), &self.column(place))
            })
            .collect::<Vec<_>>()
            .join(", ");
        let value = indexed(&Column::of_texts("value", self.dialect()));
        write!(
            sql,
            "CREATE TABLE {rows} (id {id}, key {text} NOT NULL UNIQUE, digest {bytes} NOT NULL, {columns});
             CREATE TABLE {json} (id {id}, version {text} NOT NULL, json {bytes} NOT NULL);
             CREATE TABLE {labels} (id {integer} NOT NULL, label {text} NOT NULL, value {text} NOT NULL, PRIMARY KEY (id, label)){is_index};
             CREATE INDEX {labels}_by ON {labels} (label, {value}, id);
             CREATE TABLE {owners} (id {integer} NOT NULL, uid {text} NOT NULL, controls {integer} NOT NULL, PRIMARY KEY (id, uid)){is_index};
             CREATE INDEX {owners}_by ON {owners} (uid, id);"
        )?;
        for place in self.places(false) {
            let column = self.column(place);
            // With the final sort keys, so that a page is read from the index in its order.
            let last = ["f0", "f1k"]
                .into_iter()
                // After the beginning of a long value, further keys would not be in order.
                .filter(|last| !column.is_long && *last != column.compared);
            let keys = std::iter::once(indexed(&column))
                .chain(last.map(str::to_owned))
                .collect::<Vec<_>>()
                .join(", ");
            write!(sql, "CREATE INDEX {rows}_{place} ON {rows} ({keys});")?;
        }
        Ok(())
    }

    fn write_many(&self, sql: &mut String) -> std::fmt::Result {
        let Types {
            integer, is_index, ..
        } = self.types();
        for place in self.places(true) {
            let (many, column) = (self.many(place), self.many_column(place));
            let columns = self
                .types()
                .columns(self.type_of(place), &column)
                .join(", ");
            let value = indexed(&column);
            // Long values cannot be part of a primary key.
            let id = if column.is_long {
                format!("); CREATE INDEX {many}_of ON {many} (id)")
            } else {
                format!(", PRIMARY KEY (id, {value})){is_index}")
            };
            write!(
                sql,
                "CREATE TABLE {many} (id {integer} NOT NULL, {columns}{id};
                 CREATE INDEX {many}_by ON {many} ({value}, id);"
            )?;
        }
        Ok(())
    }

    fn write_words(&self, sql: &mut String) -> std::fmt::Result {
        if !self.is_searchable() {
            return Ok(());
        }
        let words = self.words();
        // Words are extracted in this process, so that all databases find the same.
        match self.dialect() {
            Dialect::Sqlite => write!(
                sql,
                "CREATE VIRTUAL TABLE {words} USING fts5(words, content='', contentless_delete=1, detail='none', tokenize='ascii');"
            ),
            Dialect::Postgres => {
                let Types { text, integer, .. } = self.types();
                let word = indexed(&Column::of_texts("word", self.dialect()));
                write!(
                    sql,
                    "CREATE TABLE {words} (id {integer} NOT NULL, word {text} NOT NULL);
                     CREATE INDEX {words}_of ON {words} (id);
                     CREATE INDEX {words}_by ON {words} ({word}, id);"
                )
            }
        }
    }
}

/// Returns the part of a column that an index contains.
fn indexed(column: &Column) -> String {
    let Column {
        compared, is_long, ..
    } = column;
    if *is_long {
        format!("substr({compared}, {BEGINNING})")
    } else {
        compared.clone()
    }
}
