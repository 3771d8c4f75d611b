//! A connection to SQLite.

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{ToSql, params_from_iter};
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

use super::EDITION;
use super::lock::Lock;
use crate::param::{Arg, List, Param};
use crate::sql::{Columns, Connection, Dialect, Statement, StorageError, Transaction};

/// After how many SQLite instructions a query checks for an interrupt.
///
/// They take well below a millisecond.
const INTERRUPTIBLE: i32 = 1_000;

/// A connection to SQLite.
#[derive(Debug)]
pub(crate) struct Sqlite {
    connection: rusqlite::Connection,
    /// Interrupts the queries of the connection.
    interrupt: CancellationToken,
    /// The lock of the connection that writes to a file.
    ///
    /// It is released after the connection is closed, because fields are dropped in order.
    _lock: Option<Lock>,
}

impl Sqlite {
    pub(super) fn new(connection: rusqlite::Connection, lock: Option<Lock>) -> Self {
        Self {
            connection,
            interrupt: CancellationToken::new(),
            _lock: lock,
        }
    }
}

impl Connection for Sqlite {
    fn begin(&mut self, _: Transaction) -> Result<(), StorageError> {
        // There is one writer, so it waits for no other; a reader sees one state from its first statement on.
        self.run("BEGIN")
    }

    fn commit(&mut self) -> Result<(), StorageError> {
        let committed = self.run("COMMIT");
        // A full disk, for instance, leaves the transaction open.
        if committed.is_err() {
            self.roll_back();
        }
        committed
    }

    fn roll_back(&mut self) {
        // Some errors have ended the transaction already.
        if !self.connection.is_autocommit()
            && let Err(error) = self.run("ROLLBACK")
        {
            tracing::warn!(%error, "a transaction of the SQL cache cannot be rolled back");
        }
    }

    fn run(&mut self, sql: &str) -> Result<(), StorageError> {
        Ok(self.connection.execute_batch(sql)?)
    }

    fn execute(&mut self, sql: &Statement) -> Result<u64, StorageError> {
        let mut statement = self.connection.prepare_cached(&sql.text)?;
        let changed = statement.execute(params_from_iter(&sql.params))?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    fn query(
        &mut self,
        sql: &Statement,
        look: &mut dyn FnMut(Columns) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let mut statement = self.connection.prepare_cached(&sql.text)?;
        let count = statement.column_count();
        let mut rows = statement.query(params_from_iter(&sql.params))?;
        while let Some(row) = rows.next()? {
            // The caller's function may take longer than finding the rows.
            if self.interrupt.is_cancelled() {
                return Err(StorageError::Interrupted);
            }
            let columns = (0..count).map(|column| read(row.get_ref(column)?));
            look(Columns::new(columns.collect::<rusqlite::Result<_>>()?))?;
        }
        Ok(())
    }

    fn insert(&mut self, into: &str, rows: &[Vec<Arg<'_>>]) -> Result<(), StorageError> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let marks = vec!["?"; first.len()].join(", ");
        let sql = format!("INSERT INTO {into} VALUES ({marks})");
        let mut statement = self.connection.prepare_cached(&sql)?;
        for row in rows {
            statement.execute(params_from_iter(row))?;
        }
        Ok(())
    }

    fn interrupt_by(&mut self, token: &CancellationToken) -> Result<(), StorageError> {
        self.interrupt = token.clone();
        let token = token.clone();
        let is_interrupted = move || token.is_cancelled();
        let connection = &mut self.connection;
        Ok(connection.progress_handler(INTERRUPTIBLE, Some(is_interrupted))?)
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn edition(&self) -> i64 {
        EDITION
    }

    fn scrub(&mut self) -> Result<(), StorageError> {
        // Afterwards it is in no free page and no log.
        self.run("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")
    }

    #[cfg(feature = "postgres")]
    fn claim(&mut self, _: bool) -> Result<bool, StorageError> {
        // Only one process has the file open.
        Ok(true)
    }

    fn is_lost(&self) -> bool {
        false
    }
}

impl ToSql for Param {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Integer(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Real(number) => ToSqlOutput::Owned(Value::Real(*number)),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Self::List(list) => ToSqlOutput::Owned(Value::Text(json(list))),
        })
    }
}

impl ToSql for Arg<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Integer(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Real(number) => ToSqlOutput::Owned(Value::Real(*number)),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

/// Writes a list for `json_each`; bytes as hexadecimal text.
fn json(list: &List) -> String {
    let hex = |bytes: &Vec<u8>| {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>()
    };
    match list {
        List::Texts(texts) => Json::from(texts.as_slice()),
        List::Integers(numbers) => Json::from(numbers.as_slice()),
        List::Bytes(all) => all.iter().map(hex).collect(),
    }
    .to_string()
}

/// Reads a column.
fn read(column: ValueRef<'_>) -> rusqlite::Result<Param> {
    Ok(match column {
        ValueRef::Null => Param::Null,
        ValueRef::Integer(number) => Param::Integer(number),
        ValueRef::Real(number) => Param::Real(number),
        ValueRef::Text(_) => Param::Text(column.as_str()?.to_owned()),
        ValueRef::Blob(bytes) => Param::Bytes(bytes.to_vec()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::Database;

    /// Numbers without an end.
    const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT ";

    #[test]
    fn definitions_in_the_file_are_not_trusted() {
        let database = Database::in_memory();
        for mut connection in [database.open().unwrap(), database.open_to_read().unwrap()] {
            let sql = Statement::new(Dialect::Sqlite, "SELECT * FROM pragma_trusted_schema");
            let connection: &mut dyn Connection = &mut connection;
            let trusted = connection.first(&sql).unwrap().unwrap().integer();
            assert_eq!(trusted.unwrap(), 0);
        }
    }

    #[test]
    fn a_query_without_an_end_is_interrupted_and_the_next_one_is_not() {
        let mut connection = Database::in_memory().open().unwrap();
        let query = |connection: &mut Sqlite, what: &str, look: &mut dyn FnMut()| {
            let sql = Statement::new(Dialect::Sqlite, &format!("{ENDLESS}{what}"));
            connection.query(&sql, &mut |_| {
                look();
                Ok(())
            })
        };
        // Before it has found a row.
        let token = CancellationToken::new();
        connection.interrupt_by(&token).unwrap();
        token.cancel();
        let ended = query(&mut connection, "count(*) FROM n", &mut || ());
        assert!(matches!(ended, Err(StorageError::Interrupted)), "{ended:?}");
        // Between two rows.
        let token = CancellationToken::new();
        connection.interrupt_by(&token).unwrap();
        let mut rows = 0;
        let ended = query(&mut connection, "i FROM n", &mut || {
            rows += 1;
            if rows == 3 {
                token.cancel();
            }
        });
        assert!(matches!(ended, Err(StorageError::Interrupted)), "{ended:?}");
        assert_eq!(rows, 3);
        connection.interrupt_by(&CancellationToken::new()).unwrap();
        query(&mut connection, "i FROM n LIMIT 5", &mut || rows += 1).unwrap();
        assert_eq!(rows, 8);
    }
}
