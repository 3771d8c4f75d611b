//! The schema of the database that contains the tables.

use crate::param::Param;
use crate::sql::{Connection, Statement, StorageError, Transaction};

/// The version of the table layout; tables of other versions are refused.
const FORM: i64 = 3;

/// The tables that are created before those of the first kind.
const TABLES: &str = "
    CREATE TABLE kinds (number bigint PRIMARY KEY, kind text COLLATE \"C\" NOT NULL UNIQUE,
        signature text COLLATE \"C\" NOT NULL, version bigint NOT NULL, history bigint NOT NULL, change bigint NOT NULL,
        synced bigint NOT NULL, identity bytea);
    CREATE TABLE keyring (id bigint PRIMARY KEY CHECK (id = 1), stored bytea NOT NULL);
    CREATE TABLE writer (epoch bigint NOT NULL);
    INSERT INTO writer VALUES (0);
    CREATE TABLE lariat_sql (form bigint NOT NULL);";

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

/// Creates the schema and its first tables, unless they exist.
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
            connection.run(TABLES)?;
            let sql = statement("INSERT INTO lariat_sql VALUES (").with("", Param::Integer(FORM));
            connection.execute(&sql.with_end(")"))?;
            return Ok(());
        }
        if !tables.iter().any(|name| name == "lariat_sql") {
            let reason = format!("the schema {schema} has tables of another program: give the cache one of its own");
            return Err(Refused::No(reason));
        }
        let form = connection
            .first(&statement("SELECT form FROM lariat_sql"))?
            .map(|mut form| form.integer())
            .transpose()?;
        if form == Some(FORM) {
            return Ok(());
        }
        let form = form.unwrap_or_default();
        let reason = format!(
            "the tables of the schema {schema} have form {form}, and this version of Lariat has {FORM}: give it another schema, or drop this one once no replica of another version runs (DROP SCHEMA {schema} CASCADE)"
        );
        Err(Refused::No(reason))
    })
}

fn statement(text: &str) -> Statement {
    Statement::new(crate::sql::Dialect::Postgres, text)
}
