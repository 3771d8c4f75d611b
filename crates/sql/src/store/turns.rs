//! Turns: how replicas hand over the right to write.

use super::writer::{Reached, Writer};
use crate::param::List;
use crate::sql::{Connection, Statement, StorageError, Transaction};

impl Writer {
    /// Returns the stored state of all kinds.
    pub(crate) fn stored(&mut self) -> Result<Vec<Stored>, StorageError> {
        stored(&mut *self.connection)
    }

    /// Claims the right to write; returns whether this process has it now.
    ///
    /// It does not get the right while another process has it, unless by force: then the other's connection ends, and
    /// processes with other kinds or fields lose their right.
    pub(crate) fn claim(&mut self, by_force: bool) -> Result<bool, StorageError> {
        self.connection.claim(by_force)
    }

    /// Marks all other kinds as not synced.
    ///
    /// Those of replicas with other kinds or fields are not written while this process leads.
    pub(crate) fn disown(&mut self, own: Vec<i64>) -> Result<(), StorageError> {
        self.connection.within(Transaction::Writes, |connection| {
            let dialect = connection.dialect();
            let kinds = dialect.kinds();
            let update = format!("UPDATE {kinds} SET synced = 0 WHERE synced <> 0 AND NOT number");
            let mut sql = Statement::new(dialect, &update);
            sql.among(List::Integers(own));
            connection.execute(&sql).map(drop)
        })
    }

    /// Checks that this process still has the right to write.
    pub(crate) fn beat(&mut self) -> Result<(), StorageError> {
        // Beginning a write transaction checks the epoch.
        self.connection.within(Transaction::Writes, |_| Ok(()))
    }
}

/// The stored state of a kind's tables.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) number: i64,
    pub(crate) kind: String,
    pub(crate) reached: Reached,
    /// Whether they contain one complete state of the kind.
    pub(crate) is_synced: bool,
}

/// Returns the stored state of all kinds.
fn stored(connection: &mut dyn Connection) -> Result<Vec<Stored>, StorageError> {
    let dialect = connection.dialect();
    let kinds = dialect.kinds();
    let sql = format!("SELECT number, kind, version, history, change, synced FROM {kinds}");
    let kinds = connection
        .rows(&Statement::new(dialect, &sql))?
        .into_iter()
        .map(|mut kind| {
            let (number, name, version) = (kind.integer()?, kind.text()?, kind.integer()?);
            let (history, change) = (kind.integer()?, kind.integer()?);
            Ok(Stored {
                number,
                kind: name,
                reached: Reached {
                    version: version.unsigned_abs(),
                    history: u32::try_from(history).unwrap_or_default(),
                    change: change.unsigned_abs(),
                },
                is_synced: kind.integer()? != 0,
            })
        });
    kinds.collect()
}
