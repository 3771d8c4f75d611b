//! Dialects: the differences between the databases.

use std::fmt::Write;

/// A database, as far as its statements differ from those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Adds the placeholder of a parameter, counted from one.
    pub(super) fn parameter(self, number: usize, sql: &mut String) {
        let sign = match self {
            Self::Sqlite => '?',
            Self::Postgres => '$',
        };
        // Writing to a string does not fail.
        let _ = write!(sql, "{sign}{number}");
    }

    /// Returns the table of the kinds.
    ///
    /// The names of tables that exist before the first kind end with the version of the table layout in PostgreSQL, so
    /// that processes with other layouts use other tables of one schema.
    pub(crate) fn kinds(self) -> &'static str {
        match self {
            Self::Sqlite => "kinds",
            Self::Postgres => "kinds4",
        }
    }

    /// Returns the table of the keys of encrypted kinds.
    pub(crate) fn keyring(self) -> &'static str {
        match self {
            Self::Sqlite => "keyring",
            Self::Postgres => "keyring4",
        }
    }

    /// Returns the statement that lists the names of all tables.
    pub(crate) fn tables(self) -> &'static str {
        match self {
            Self::Sqlite => "SELECT name FROM sqlite_schema WHERE type = 'table'",
            Self::Postgres => {
                "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()"
            }
        }
    }

    /// Returns the function that finds a part in a text.
    ///
    /// Both are in lower case, as far as ASCII letters are concerned.
    pub(super) fn position(self) -> &'static str {
        match self {
            Self::Sqlite => "instr",
            Self::Postgres => "strpos",
        }
    }
}
