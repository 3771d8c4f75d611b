//! Opening the file of a cache: its identity, layout and integrity.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::connection::Sqlite;
use super::error::file_error;
use super::lock::Lock;
use super::private;
use crate::sql::StorageError;

/// The version of the table layout; a file of another version is created again.
const FORM: i64 = 4;

/// The tables that exist before the first kind.
const KINDS: &str = "
    CREATE TABLE kinds (number INTEGER PRIMARY KEY, kind TEXT NOT NULL UNIQUE, signature TEXT NOT NULL,
        version INTEGER NOT NULL, history INTEGER NOT NULL, change INTEGER NOT NULL, synced INTEGER NOT NULL,
        identity BLOB);
    CREATE TABLE keyring (id INTEGER PRIMARY KEY CHECK (id = 1), stored BLOB NOT NULL);";

/// The SQLite application id of the file: `lari`.
const APPLICATION: i32 = 0x6c61_7269;

/// The header of every SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// How long a statement waits for another connection.
const BUSY: Duration = Duration::from_secs(120);

/// The number of pages in the log before a checkpoint, and its size after one.
const LOG: &str = "PRAGMA wal_autocheckpoint = 8000; PRAGMA journal_size_limit = 67108864;";

/// A connection's memory for pages, in KiB; temporary tables are in memory too.
const MEMORY: &str = "PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY;";

/// The suffixes of the log of a database, and of the index of the log.
const LOGS: [&str; 2] = ["-wal", "-shm"];

/// Keeps definitions in a changed file from calling functions with effects.
const DISTRUST: &str = "PRAGMA trusted_schema = OFF;";

/// Where a cache is stored.
#[derive(Debug, Clone)]
pub(crate) enum Location {
    File(PathBuf),
    /// In memory, under a name that is unique in the process.
    Memory(u64),
}

/// A database that can be opened by several connections.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    place: Location,
}

impl Database {
    pub(crate) fn in_memory() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            place: Location::Memory(NEXT.fetch_add(1, Ordering::Relaxed)),
        }
    }

    pub(crate) fn in_file(path: impl Into<PathBuf>) -> Self {
        Self {
            place: Location::File(path.into()),
        }
    }

    /// Returns whether it is kept in a file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.place, Location::File(_))
    }

    /// Opens the database for writing.
    ///
    /// The file is made readable for its owner only. A damaged cache, or one of another version, is deleted and created
    /// again, because the API server has all its data. Other files are not touched, nor is a file that another cache
    /// uses.
    pub(crate) fn open(&self) -> Result<Sqlite, StorageError> {
        let lock = match &self.place {
            Location::File(path) => Some(Lock::take(path)?),
            Location::Memory(_) => None,
        };
        Ok(Sqlite::new(self.open_to_write()?, lock))
    }

    fn open_to_write(&self) -> Result<Connection, StorageError> {
        let Location::File(path) = &self.place else {
            let connection = self.connect(OpenFlags::default())?;
            prepare(&connection)?;
            return Ok(connection);
        };
        let is_ours = is_ours(path)?;
        for suffix in LOGS {
            // SQLite writes pages to a log that is there, whoever can read it.
            let name = beside(path, suffix);
            private::check(&name).map_err(|error| file_error(&name, "opened", &error))?;
        }
        // The mode of another program's file is not changed.
        if is_ours {
            restrict(path)?;
        }
        let opened = self.connect(OpenFlags::default()).and_then(|connection| {
            prepare(&connection)?;
            Ok(connection)
        });
        match opened {
            Err(error) if is_ours && is_damaged(&error) => {
                let path = path.display();
                tracing::warn!(%path, %error, "the SQL cache cannot be read; it is deleted and filled again");
            }
            opened => return opened.map_err(|error| self.failed("opened", &error)),
        }
        // With the log: SQLite would apply the old log to the new file.
        for suffix in [""].into_iter().chain(LOGS) {
            match std::fs::remove_file(beside(path, suffix)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(file_error(path, "deleted", &error));
                }
                _ => {}
            }
        }
        restrict(path)?;
        let connection = self.connect(OpenFlags::default()).and_then(|connection| {
            prepare(&connection)?;
            Ok(connection)
        });
        connection.map_err(|error| self.failed("opened", &error))
    }

    /// Opens it for reading.
    pub(crate) fn open_to_read(&self) -> Result<Sqlite, StorageError> {
        let connection = self
            .connect(OpenFlags::default())
            .map_err(|error| self.failed("opened", &error))?;
        // A safeguard: the file is opened for writing, because even a reader of a WAL database writes to its shared
        // memory.
        connection.pragma_update(None, "query_only", true)?;
        Ok(Sqlite::new(connection, None))
    }

    fn connect(&self, flags: OpenFlags) -> rusqlite::Result<Connection> {
        let connection = match &self.place {
            Location::File(path) => Connection::open_with_flags(path, flags),
            Location::Memory(number) => {
                Connection::open_with_flags(format!("file:/lariat-{number}?vfs=memdb"), flags)
            }
        }?;
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.execute_batch(MEMORY)?;
        connection.execute_batch(DISTRUST)?;
        Ok(connection)
    }

    fn failed(&self, what: &'static str, error: &rusqlite::Error) -> StorageError {
        match &self.place {
            Location::File(path) => file_error(path, what, error),
            Location::Memory(_) => StorageError::Sqlite(error.to_string()),
        }
    }
}

/// Creates the file if it does not exist, readable for its owner only.
///
/// SQLite creates its log with the same mode.
fn restrict(path: &Path) -> Result<(), StorageError> {
    let mut options = OpenOptions::new();
    let file = private::open(path, options.create(true).append(true))
        .map_err(|error| file_error(path, "opened", &error))?;
    private::restrict(&file).map_err(|error| file_error(path, "restricted to its owner", &error))
}

/// Returns the path of a file beside the database.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(suffix);
    name.into()
}

/// Returns whether a file is a cache, the remains of one, or does not exist.
///
/// Other files are neither changed nor deleted if their path is given by mistake.
fn is_ours(path: &Path) -> Result<bool, StorageError> {
    let mut header = Vec::new();
    match private::open(path, OpenOptions::new().read(true)) {
        Ok(file) => {
            let read = file.take(72).read_to_end(&mut header);
            read.map_err(|error| file_error(path, "read", &error))?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(file_error(path, "opened", &error)),
    }
    let magic = header.len().min(MAGIC.len());
    let is_sqlite = header[..magic] == MAGIC[..magic];
    let id = header
        .get(68..72)
        .map(|id| <[u8; 4]>::try_from(id).unwrap_or_default());
    let is_ours = is_sqlite && id.is_none_or(|id| i32::from_be_bytes(id) == APPLICATION);
    if is_ours || is_sqlite {
        return Ok(is_ours);
    }
    Err(file_error(
        path,
        "opened",
        &"it is not a database: use the path of a cache or of a new file",
    ))
}

fn is_damaged(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseCorrupt | NotADatabase)
    )
}

/// Marks a new database as a cache, before anything is written to it.
///
/// Fails for a database of another program.
fn identify(connection: &Connection) -> rusqlite::Result<()> {
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if id == APPLICATION {
        return Ok(());
    }
    if id == 0 && tables == 0 {
        return connection.pragma_update(None, "application_id", APPLICATION);
    }
    let other = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    let reason = "it is a database of another program: use the path of a cache or of a new file";
    Err(rusqlite::Error::SqliteFailure(
        other,
        Some(reason.to_owned()),
    ))
}

/// Configures the database, and creates the tables that do not depend on kinds.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    identify(connection)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // A crash of the machine may lose the last transactions, which the informer publishes again; it never damages the
    // file.
    connection.execute_batch("PRAGMA synchronous = NORMAL;")?;
    connection.execute_batch(LOG)?;
    let form: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if form == 0 {
        // Atomic, even if the process is killed.
        connection.execute_batch(&format!(
            "BEGIN; {KINDS} PRAGMA user_version = {FORM}; COMMIT;"
        ))?;
    } else if form != FORM {
        let other = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_NOTADB);
        let reason = format!("its tables have form {form}, and this version of Lariat has {FORM}");
        return Err(rusqlite::Error::SqliteFailure(other, Some(reason)));
    }
    // Reads the header of every page once, so that a truncated file is detected now, and not by a later query.
    let sound: String = connection.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    if sound == "ok" {
        return Ok(());
    }
    let corrupt = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(rusqlite::Error::SqliteFailure(corrupt, Some(sound)))
}
