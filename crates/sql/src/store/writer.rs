//! The writer: the one connection that writes.

use std::collections::HashSet;

use lariat_seal::Keyring;

use super::database::Database;
use super::reader::Tables;
use super::{kept, kinds, rows};
use crate::op::Op;
use crate::param::Param;
use crate::sealed::{self, Renewed, Sealed};
use crate::sql::{Connection, Dialect, Statement, StorageError, Transaction};

/// The progress of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    /// The resource version up to which nothing is missing.
    pub(crate) version: u64,
    /// Distinguishes the changes of this writer from those of other writers.
    pub(crate) history: u32,
    /// The number of the last change.
    pub(crate) change: u64,
}

/// Writes to a cache.
pub(crate) struct Writer {
    pub(super) connection: Box<dyn Connection>,
}

impl Writer {
    pub(crate) fn open(database: &Database) -> Result<Self, StorageError> {
        let connection = database.open()?;
        Ok(Self { connection })
    }

    /// Finds or creates the tables of a kind.
    pub(crate) fn open_kind(&mut self, tables: &Tables) -> Result<(), StorageError> {
        kinds::open(&mut *self.connection, tables)
    }

    /// Drops the tables of all other kinds, in a database that is not shared.
    pub(crate) fn keep_only(&mut self, kinds: &[String]) -> Result<(), StorageError> {
        kinds::keep_only(&mut *self.connection, kinds)
    }

    /// Returns whether this connection cannot write any more, so that another one may.
    pub(crate) fn is_lost(&self) -> bool {
        self.connection.is_lost()
    }

    /// Lets the database analyse the tables of a kind, after they were filled.
    pub(crate) fn settle(&mut self, tables: &Tables) -> Result<(), StorageError> {
        let names = match &tables.sealed {
            Some(sealed) => vec![sealed.table.clone()],
            None => tables.layout.tables(),
        };
        match self.connection.dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => self
                .connection
                .run(&format!("ANALYZE {}", names.join(", "))),
        }
    }

    /// Returns the keys of encrypted kinds in their stored form.
    pub(crate) fn keyring(&mut self) -> Result<Option<Vec<u8>>, StorageError> {
        kinds::keyring(&mut *self.connection)
    }

    /// Stores the keys of encrypted kinds, before anything is encrypted with them.
    ///
    /// It writes nothing and returns `false` if other keys than `before` are stored by now.
    pub(crate) fn replace_keyring(
        &mut self,
        before: Option<&[u8]>,
        stored: &[u8],
    ) -> Result<bool, StorageError> {
        kinds::replace_keyring(&mut *self.connection, before, stored)
    }

    /// Returns the number of rows of an encrypted kind.
    pub(crate) fn sealed_rows(&mut self, of: &Sealed) -> Result<usize, StorageError> {
        sealed::rows(&mut *self.connection, of)
    }

    /// Seals the next rows after another one anew; `None` if no row follows.
    pub(crate) fn renew(
        &mut self,
        of: &Sealed,
        keys: &Keyring,
        after: i64,
    ) -> Result<Option<Renewed>, StorageError> {
        self.connection.within(Transaction::Writes, |connection| {
            sealed::renew(connection, of, keys, after)
        })
    }

    /// Stores keys without the old data keys, once no row needs these.
    ///
    /// Returns `false` if other keys than `before` are stored.
    pub(crate) fn retire(
        &mut self,
        numbers: Vec<i64>,
        before: &Keyring,
        after: &Keyring,
    ) -> Result<bool, StorageError> {
        kinds::retire(&mut *self.connection, numbers, before, after)
    }

    /// Returns the keys of all rows of a kind.
    pub(crate) fn keys(&mut self, tables: &Tables) -> Result<Vec<String>, StorageError> {
        let connection = &mut *self.connection;
        match &tables.sealed {
            Some(sealed) => sealed::keys(connection, sealed, &tables.schema),
            None => rows::keys(connection, &tables.layout),
        }
    }

    /// Writes changes of a kind atomically, with its progress.
    ///
    /// Without a progress the kind must not be read until all further changes are written, unless nothing has changed.
    pub(crate) fn apply(
        &mut self,
        tables: &Tables,
        ops: &[Op],
        reached: Option<(Reached, Option<&str>)>,
    ) -> Result<(), StorageError> {
        // The statements below write each row once.
        let ops = last_of_each(ops);
        self.connection.within(Transaction::Writes, |connection| {
            let has_changed = match &tables.sealed {
                Some(sealed) => sealed::write(connection, sealed, &ops)?,
                None => rows::write(connection, &tables.layout, &ops)?,
            };
            note(connection, tables.layout.number(), has_changed, reached)
        })
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

/// Keeps the last change of each row, in order.
fn last_of_each(ops: &[Op]) -> Vec<&Op> {
    let mut seen = HashSet::with_capacity(ops.len());
    let mut last: Vec<&Op> = ops
        .iter()
        .rev()
        .filter(|op| seen.insert(op.key()))
        .collect();
    last.reverse();
    last
}

/// Writes the progress of a kind.
fn note(
    connection: &mut dyn Connection,
    number: i64,
    has_changed: bool,
    reached: Option<(Reached, Option<&str>)>,
) -> Result<(), StorageError> {
    let number = Param::Integer(number);
    let dialect = connection.dialect();
    let kinds = dialect.kinds();
    let update = |text| Statement::new(dialect, &format!("UPDATE {kinds} SET {text}"));
    let sql = match reached {
        Some((reached, identity)) => update("synced = 1, version = ")
            .with("", Param::Integer(reached.version.cast_signed()))
            .with(", history = ", Param::Integer(reached.history.into()))
            .with(", change = ", Param::Integer(reached.change.cast_signed()))
            .with(", identity = ", identity.map_or(Param::Null, kept::hash))
            .with(" WHERE number = ", number),
        // The rows are between two states now, so readers must not use them.
        None if has_changed => {
            update("synced = 0 WHERE synced <> 0 AND number = ").with("", number)
        }
        None => return Ok(()),
    };
    connection.execute(&sql)?;
    Ok(())
}
