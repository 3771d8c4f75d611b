//! The interface of a database connection.

use tokio_util::sync::CancellationToken;

use super::error::StorageError;
use super::{Dialect, Statement};
use crate::param::{Arg, Param};

/// A connection to a database; all methods block.
pub(crate) trait Connection: Send {
    /// Begins a transaction; a read transaction sees one state.
    fn begin(&mut self, access: Transaction) -> Result<(), StorageError>;

    /// Commits the transaction or, after an error, rolls it back.
    fn commit(&mut self) -> Result<(), StorageError>;

    /// Rolls the transaction back.
    fn roll_back(&mut self);

    /// Runs statements without parameters.
    fn run(&mut self, sql: &str) -> Result<(), StorageError>;

    /// Runs a statement; returns how many rows it changed.
    fn execute(&mut self, sql: &Statement) -> Result<u64, StorageError>;

    /// Runs a statement and calls a function with each of its rows.
    fn query(
        &mut self,
        sql: &Statement,
        look: &mut dyn FnMut(Columns) -> Result<(), StorageError>,
    ) -> Result<(), StorageError>;

    /// Inserts rows into a table, whose columns may be named after it.
    fn insert(&mut self, into: &str, rows: &[Vec<Arg<'_>>]) -> Result<(), StorageError>;

    /// Interrupts queries with [`StorageError::Interrupted`] once a token is cancelled.
    ///
    /// It replaces the previous token.
    fn interrupt_by(&mut self, token: &CancellationToken) -> Result<(), StorageError>;

    /// Returns the dialect of its statements.
    fn dialect(&self) -> Dialect;

    /// Returns the number that processes have in common if they share tables.
    ///
    /// It depends on their kinds and fields; in a file it is always the same.
    fn edition(&self) -> i64;

    /// Ensures that deleted data is not left in any file.
    fn scrub(&mut self) -> Result<(), StorageError>;

    /// Claims the right to write; returns whether this connection has it now.
    ///
    /// It does not get the right while another connection has it, unless by force: then the server ends the other
    /// connection, and connections of other editions lose their right, too.
    #[cfg(feature = "postgres")]
    fn claim(&mut self, by_force: bool) -> Result<bool, StorageError>;

    /// Returns whether the connection is unusable from now on.
    ///
    /// The server has ended it, another one writes in its place, or it was interrupted.
    fn is_lost(&self) -> bool;
}

/// What a transaction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transaction {
    Reads,
    Writes,
}

impl dyn Connection + '_ {
    /// Runs a statement and returns all its rows.
    pub(crate) fn rows(&mut self, sql: &Statement) -> Result<Vec<Columns>, StorageError> {
        let mut rows = Vec::new();
        self.query(sql, &mut |columns| {
            rows.push(columns);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Runs a statement and returns its first row.
    pub(crate) fn first(&mut self, sql: &Statement) -> Result<Option<Columns>, StorageError> {
        Ok(self.rows(sql)?.into_iter().next())
    }

    /// Runs work in one transaction, which is committed if it succeeds.
    pub(crate) fn within<T, E: From<StorageError>>(
        &mut self,
        transaction: Transaction,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.begin(transaction)?;
        match work(self) {
            Ok(done) => {
                self.commit()?;
                Ok(done)
            }
            Err(error) => {
                // The error of the work is returned, not one of the rollback.
                self.roll_back();
                Err(error)
            }
        }
    }
}

/// The columns of a row, which are taken from left to right.
#[derive(Debug)]
pub(crate) struct Columns(std::vec::IntoIter<Param>);

impl Columns {
    pub(crate) fn new(columns: Vec<Param>) -> Self {
        Self(columns.into_iter())
    }

    /// Takes the remaining columns.
    pub(crate) fn rest(self) -> Vec<Param> {
        self.0.collect()
    }

    pub(crate) fn param(&mut self) -> Param {
        self.0.next().unwrap_or(Param::Null)
    }

    pub(crate) fn text(&mut self) -> Result<String, StorageError> {
        self.optional_text()?.ok_or_else(|| wrong("a text"))
    }

    pub(crate) fn optional_text(&mut self) -> Result<Option<String>, StorageError> {
        match self.param() {
            Param::Null => Ok(None),
            Param::Text(text) => Ok(Some(text)),
            _ => Err(wrong("a text")),
        }
    }

    pub(crate) fn integer(&mut self) -> Result<i64, StorageError> {
        match self.param() {
            Param::Integer(number) => Ok(number),
            _ => Err(wrong("a whole number")),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, StorageError> {
        match self.param() {
            Param::Bytes(bytes) => Ok(bytes),
            _ => Err(wrong("bytes")),
        }
    }
}

fn wrong(expected: &'static str) -> StorageError {
    StorageError::Column { expected }
}
