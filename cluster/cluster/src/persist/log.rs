//! The SQLite file: its form, and writing to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Statement, Transaction, params};

use super::error::DataError;
use crate::access::Signer;
use crate::store::{Batch, Event, EventType, Record, Retention, Snapshot, Stored};

/// The magic number of the file: "lari".
const APPLICATION: i64 = 0x6c61_7269;
const FORMAT: i64 = 1;

/// The time to wait for another cluster that is about to close the file.
const BUSY: Duration = Duration::from_millis(500);

/// The tables.
///
/// `value` is an object's JSON, absent for a deletion; `prev_rv` is 0 for a new object.
const SCHEMA: &str = "
    CREATE TABLE log (
        rv INTEGER PRIMARY KEY,
        grp_resource TEXT NOT NULL,
        ns TEXT,
        name TEXT NOT NULL,
        event TEXT NOT NULL,
        prev_rv INTEGER NOT NULL,
        value BLOB
    ) STRICT;
    CREATE TABLE meta (revision INTEGER NOT NULL, compacted INTEGER NOT NULL) STRICT;
    INSERT INTO meta VALUES (0, 0);
";

/// Inserts a row, or replaces it.
///
/// A commit that failed may have reached the disk, so its rows may be written again.
const INSERT: &str = "INSERT OR REPLACE INTO log VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// A row is deleted when the one that replaced it is compacted, and so is a deletion itself.
const COMPACT: &str = "
    DELETE FROM log WHERE rv IN (
        SELECT prev_rv FROM log WHERE prev_rv != 0 AND rv <= ?1
        UNION SELECT rv FROM log WHERE event = 'DELETED' AND rv <= ?1
    )";

/// The key that signs tokens, in a table that a file of an earlier version does not have.
const KEYS: &str =
    "CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT";
const INSERT_KEY: &str = "INSERT OR IGNORE INTO keys VALUES ('tokens', ?1)";
const KEY: &str = "SELECT value FROM keys WHERE name = 'tokens'";

/// The last row beyond so many of the newest rows, or so many bytes of them.
const OLDEST: &str = "
    SELECT max(rv) FROM (
        SELECT rv, row_number() OVER newest AS rows, sum(length(value)) OVER newest AS bytes
        FROM log WINDOW newest AS (ORDER BY rv DESC ROWS UNBOUNDED PRECEDING)
    ) WHERE rows > ?1 OR bytes > ?2";

/// The rows of a file this process has to itself.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    /// The history that is kept beside the present objects.
    history: Retention,
    /// The rows that were added since the last compaction.
    pub(super) added: Added,
}

/// The size of rows that are in the file, or were added to it.
#[derive(Debug, Default)]
pub(super) struct Added {
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

impl Log {
    /// Opens a file, and returns whether it is new.
    pub(super) fn open(path: PathBuf, history: Retention) -> Result<(Self, bool), DataError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            // One task at a time has the connection, so SQLite needs no lock of its own.
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let of = |error| DataError::of(&path, error);
        let connection = Connection::open_with_flags(&path, flags).map_err(of)?;
        let is_new = prepare(&connection, &path)?;
        let log = Self {
            connection,
            path,
            history,
            added: Added::default(),
        };
        Ok((log, is_new))
    }

    /// Returns the signer with the key of the file, which is the given one if it had none.
    ///
    /// An empty key is not kept. The file is as secret as the key: it has the Secrets of the cluster.
    pub(super) fn keep_key(&self, key: Vec<u8>) -> Result<Signer, DataError> {
        let kept = || -> rusqlite::Result<Vec<u8>> {
            if key.is_empty() {
                return Ok(key);
            }
            self.connection.execute(KEYS, [])?;
            self.connection.execute(INSERT_KEY, [&key])?;
            self.connection.query_row(KEY, [], |row| row.get(0))
        };
        let key = kept().map_err(|error| DataError::of(&self.path, error))?;
        Signer::new(&key).map_err(|error| DataError::Key {
            path: self.path.clone(),
            reason: error.to_string(),
        })
    }

    /// Writes a batch as a whole or not at all. Writing it again changes nothing.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<(), DataError> {
        let added = self.try_write(batch);
        let added = added.map_err(|error| DataError::of(&self.path, error))?;
        self.added.rows += added.rows;
        self.added.bytes += added.bytes;
        Ok(())
    }

    /// Returns whether the file has much more than it needs.
    ///
    /// A quarter more is well, and so is a little: compacting costs more than that does.
    pub(super) fn needs_compaction(&self) -> bool {
        self.added.rows > (self.history.changes / 4).max(1000)
            || self.added.bytes > (self.history.bytes / 4).max(16 << 20)
    }

    /// Deletes the rows that no history reaches and no object needs.
    pub(super) fn compact(&mut self) -> Result<(), DataError> {
        // Reset first: if compacting fails, the next attempt comes after as many new rows, not after each write.
        self.added = Added::default();
        let compacted = self.compact_to_history();
        compacted.map_err(|error| DataError::of(&self.path, error))
    }

    fn try_write(&mut self, batch: &Batch) -> rusqlite::Result<Added> {
        let transaction = self.connection.transaction()?;
        let mut rows = transaction.prepare(INSERT)?;
        let mut added = Added::default();
        // One transaction for all records: after a crash the file ends at a revision that was current at some moment,
        // never between two changes of one batch.
        for record in &batch.records {
            match record {
                Record::Change(resource, event) => {
                    added.bytes += event.object.size();
                    Row::of(resource, event).insert(&mut rows)?;
                }
                Record::Revision(revision) => {
                    set_meta(&transaction, "revision", *revision)?;
                }
                Record::Compaction(revision) => compact(&transaction, *revision)?,
                Record::Reset(snapshot) => reset(&transaction, &mut rows, snapshot)?,
            }
            added.rows += 1;
        }
        drop(rows);
        transaction.commit()?;
        Ok(added)
    }

    fn compact_to_history(&mut self) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        let limit = |limit: usize| i64::try_from(limit).unwrap_or(i64::MAX);
        let limits = [limit(self.history.changes), limit(self.history.bytes)];
        let oldest = transaction.query_row(OLDEST, limits, |row| row.get::<_, Option<i64>>(0))?;
        if let Some(oldest) = oldest {
            compact(&transaction, oldest.unsigned_abs())?;
        }
        transaction.commit()
    }
}

/// Checks that the file is ours and takes it; returns whether it is new.
fn prepare(connection: &Connection, path: &Path) -> Result<bool, DataError> {
    let of = |error| DataError::of(path, error);
    connection.busy_timeout(BUSY).map_err(of)?;
    connection
        .pragma_update(None, "locking_mode", "EXCLUSIVE")
        .map_err(of)?;
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    // Checked before anything is written: a database of another program must stay as it is.
    let tables = number("SELECT count(*) FROM sqlite_schema").map_err(of)?;
    let application = number("PRAGMA application_id").map_err(of)?;
    let format = number("PRAGMA user_version").map_err(of)?;
    let path = path.to_owned();
    match (tables, application) {
        (0, 0) => {}
        (_, APPLICATION) if format == FORMAT => {}
        (_, APPLICATION) => {
            let known = FORMAT;
            return Err(DataError::Format {
                path,
                format,
                known,
            });
        }
        _ => return Err(DataError::Foreign { path }),
    }
    let is_new = tables == 0;
    hold(connection, is_new).map_err(|error| DataError::of(&path, error))?;
    Ok(is_new)
}

/// Locks the file for good, and creates the tables of a new one.
fn hold(connection: &Connection, is_new: bool) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    // A commit returns when the disk has it.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    if is_new {
        connection.execute_batch(SCHEMA)?;
        connection.pragma_update(None, "application_id", APPLICATION)?;
        connection.pragma_update(None, "user_version", FORMAT)?;
    }
    // The write makes SQLite take its lock, which the exclusive mode then keeps.
    connection.execute_batch("UPDATE meta SET revision = revision; COMMIT")
}

fn set_meta(
    transaction: &Transaction<'_>,
    column: &'static str,
    revision: u64,
) -> rusqlite::Result<()> {
    let sql = format!("UPDATE meta SET {column} = ?1");
    transaction.execute(&sql, [signed(revision)]).map(|_| ())
}

fn compact(transaction: &Transaction<'_>, revision: u64) -> rusqlite::Result<()> {
    transaction.execute(COMPACT, [signed(revision)])?;
    // The history in memory may have been forgotten beyond what the file has to keep.
    let sql = "UPDATE meta SET compacted = max(compacted, ?1)";
    transaction.execute(sql, [signed(revision)]).map(|_| ())
}

/// Replaces everything by a snapshot.
fn reset(
    transaction: &Transaction<'_>,
    rows: &mut Statement<'_>,
    snapshot: &Snapshot,
) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM log", [])?;
    set_meta(transaction, "revision", snapshot.revision())?;
    set_meta(transaction, "compacted", snapshot.revision())?;
    for (resource, stored) in snapshot.in_order() {
        let row = Row {
            resource,
            stored,
            event: EventType::Added,
            previous: 0,
        };
        row.insert(rows)?;
    }
    Ok(())
}

/// One line of the log.
struct Row<'a> {
    resource: &'a str,
    stored: &'a Stored,
    event: EventType,
    previous: u64,
}

impl<'a> Row<'a> {
    fn of(resource: &'a str, event: &'a Event) -> Self {
        let previous = event.previous.as_ref().map(|previous| previous.revision());
        Self {
            resource,
            stored: &event.object,
            event: event.event,
            previous: previous.unwrap_or(0),
        }
    }

    fn insert(&self, rows: &mut Statement<'_>) -> rusqlite::Result<()> {
        let key = self.stored.key();
        // The last state of a deleted object is in the row that `prev_rv` names.
        let value = (self.event != EventType::Deleted).then(|| self.stored.json());
        let values = params![
            signed(self.stored.revision()),
            self.resource,
            key.namespace(),
            key.name(),
            self.event.as_str(),
            signed(self.previous),
            value.as_deref(),
        ];
        rows.execute(values).map(|_| ())
    }
}

/// Versions stay below 2⁶², so this loses nothing.
fn signed(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}
