//! The schema of the database that contains the tables.

use crate::param::Param;
use crate::sql::{Connection, Statement, StorageError, Transaction};

/// The version of the table layout, with which the names of the tables below end.
///
/// A new layout gets a new number and new names, also in [`Dialect`](crate::sql::Dialect).
pub(crate) const FORM: i64 = 4;

/// The tables that are created before those of the first kind.
const TABLES: &str = "
    CREATE TABLE kinds4 (number bigint PRIMARY KEY, kind text COLLATE \"C\" NOT NULL,
        signature text COLLATE \"C\" NOT NULL, version bigint NOT NULL, history bigint NOT NULL, change bigint NOT NULL,
        synced bigint NOT NULL, identity bytea);
    CREATE TABLE keyring4 (id bigint PRIMARY KEY, stored bytea NOT NULL);
    CREATE TABLE writer4 (edition bigint PRIMARY KEY, epoch bigint NOT NULL);";

/// The table of the numbers in the names of tables.
///
/// All versions of Lariat share it. Tables that no process has used for a while are dropped by their numbers.
const REGISTRY: &str =
    "CREATE TABLE lariat_tables (number bigint PRIMARY KEY, used timestamptz NOT NULL);";

/// The oldest supported version of PostgreSQL.
const OLDEST: i64 = 13;

/// Checks whether the server supports the cache; returns its version.
pub(super) fn check(connection: &mut dyn Connection) -> Result<i64, Refused> {
    let sql = "SELECT current_setting('server_version_num')::bigint / 10000, current_setting('server_encoding')";
    let found = connection.first(&statement(sql))?;
    let Some(mut found) = found else {
        return Err(Refused::No("it does not report its version".to_owned()));
    };
    let (version, encoding) = (found.integer()?, found.text()?);
    if version < OLDEST {
        let reason = format!("it has version {version}: use PostgreSQL {OLDEST} or later");
        return Err(Refused::No(reason));
    }
    if encoding != "UTF8" {
        let reason = format!("the database has the encoding {encoding}: create one with UTF8");
        return Err(Refused::No(reason));
    }
    Ok(version)
}

/// The reason why a server is refused.
pub(super) enum Refused {
    Failed(StorageError),
    No(String),
}

impl From<StorageError> for Refused {
    fn from(error: StorageError) -> Self {
        Self::Failed(error)
    }
}

/// Creates the schema and the first tables of this layout, unless they exist.
///
/// A lock ensures that one process does so at a time.
pub(super) fn prepare(
    connection: &mut dyn Connection,
    schema: &str,
    lock: i64,
) -> Result<(), Refused> {
    connection.within(Transaction::Writes, |connection| {
        let sql = statement("SELECT pg_advisory_xact_lock(").with("", Param::Integer(lock));
        connection.execute(&sql.with_end(")"))?;
        let select = "SELECT oid::bigint FROM pg_namespace WHERE nspname::text = ";
        let sql = statement(select).with("", Param::Text(schema.to_owned()));
        if connection.first(&sql)?.is_none() {
            connection.run(&format!("CREATE SCHEMA \"{schema}\""))?;
        }
        let tables = connection
            .rows(&statement(connection.dialect().tables()))?
            .into_iter()
            .map(|mut table| table.text())
            .collect::<Result<Vec<_>, _>>()?;
        // A schema that the administrator has created, or this process just now.
        if tables.is_empty() {
            connection.run(REGISTRY)?;
        } else if !tables.iter().any(|name| name == "lariat_tables") {
            let reason = format!(
                "the schema {schema} has tables of another program: give the cache one of its own"
            );
            return Err(Refused::No(reason));
        }
        if !tables
            .iter()
            .any(|name| name == connection.dialect().kinds())
        {
            connection.run(TABLES)?;
        }
        Ok(())
    })
}

fn statement(text: &str) -> Statement {
    Statement::new(crate::sql::Dialect::Postgres, text)
}
