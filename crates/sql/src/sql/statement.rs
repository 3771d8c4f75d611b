//! Statements and their parameters.

use super::Dialect;
use crate::param::{List, Param};

/// A statement and its parameters.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) params: Vec<Param>,
    dialect: Dialect,
}

impl Statement {
    pub(crate) fn new(dialect: Dialect, text: &str) -> Self {
        Self {
            text: text.to_owned(),
            params: Vec::new(),
            dialect,
        }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a parameter at the end.
    pub(crate) fn bind(&mut self, param: Param) {
        self.params.push(param);
        self.dialect.parameter(self.params.len(), &mut self.text);
    }

    /// Adds the last parameter again, at the end.
    pub(super) fn bind_again(&mut self) {
        self.dialect.parameter(self.params.len(), &mut self.text);
    }

    /// Adds text, and a parameter after it.
    pub(crate) fn with(mut self, text: &str, param: Param) -> Self {
        self.push(text);
        self.bind(param);
        self
    }

    /// Adds text at the end.
    pub(crate) fn with_end(mut self, text: &str) -> Self {
        self.push(text);
        self
    }

    /// Adds the condition that the expression before is one of these values.
    ///
    /// The values are one parameter, however many there are.
    pub(crate) fn among(&mut self, list: List) {
        let (before, after) = match (self.dialect, &list) {
            (Dialect::Postgres, _) => (" = ANY(", ")"),
            // JSON has no bytes, so they are hexadecimal there.
            (Dialect::Sqlite, List::Bytes(_)) => (" IN (SELECT unhex(value) FROM json_each(", "))"),
            (Dialect::Sqlite, _) => (" IN (SELECT value FROM json_each(", "))"),
        };
        self.push(before);
        self.bind(Param::List(list));
        self.push(after);
    }

    /// Adds a list, with a separator between its parts.
    pub(crate) fn join<T>(
        &mut self,
        parts: impl IntoIterator<Item = T>,
        separator: &str,
        mut add: impl FnMut(&mut Self, T),
    ) {
        for (number, part) in parts.into_iter().enumerate() {
            if number > 0 {
                self.push(separator);
            }
            add(self, part);
        }
    }
}
