//! The one connection that writes.

use lariat_core::ObjectKey;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Transaction, params_from_iter};

use super::error::StorageError;
use super::file::{Database, keep_only, keyring, open_kind, store_keyring};
use super::lock::Lock;
use super::reader::Tables;
use crate::field::Value;
use crate::query::words_of;
use crate::row::Row;
use crate::schema::Schema;
use crate::sealed::{self, Keys, Sealed};
use crate::sql::{Layout, Param, Statement};

/// A change of one row.
pub(crate) enum Op {
    Put {
        row: Row,
        json: Vec<u8>,
        /// Whether the row may be there in this state, from an earlier process.
        is_initial: bool,
    },
    Delete(ObjectKey),
}

/// Up to where a kind is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    /// The resource version up to which nothing is missing.
    pub(crate) version: u64,
    /// The number of the last change.
    pub(crate) change: u64,
}

/// Writes to a cache.
#[derive(Debug)]
pub(crate) struct Writer {
    connection: Connection,
    /// Given up after the connection is closed: fields are dropped in their order.
    _lock: Option<Lock>,
}

impl Writer {
    pub(crate) fn open(database: &Database, lock: Option<Lock>) -> Result<Self, StorageError> {
        Ok(Self {
            connection: database.open()?,
            _lock: lock,
        })
    }

    /// Drops the tables of kinds that the cache does not have any more.
    pub(crate) fn keep_only(&mut self, kinds: &[String]) -> Result<(), StorageError> {
        keep_only(&mut self.connection, kinds)
    }

    /// Finds or makes the tables of a kind, which is encrypted if there are keys.
    pub(crate) fn open_kind(
        &mut self,
        schema: &Schema,
        keys: Option<&Keys>,
    ) -> Result<(Layout, Option<Sealed>), StorageError> {
        open_kind(&mut self.connection, schema, keys)
    }

    /// Returns the keys of encrypted kinds, as they are stored.
    pub(crate) fn keyring(&self) -> Result<Option<Vec<u8>>, StorageError> {
        keyring(&self.connection)
    }

    /// Stores the keys of encrypted kinds, before anything is sealed with them.
    pub(crate) fn store_keyring(&self, stored: &[u8]) -> Result<(), StorageError> {
        store_keyring(&self.connection, stored)
    }

    /// Returns the keys of all rows of a kind.
    pub(crate) fn keys(&self, tables: &Tables) -> Result<Vec<String>, StorageError> {
        let layout = &tables.layout;
        if let Some(sealed) = &tables.sealed {
            return sealed::keys(&self.connection, sealed, &tables.schema);
        }
        let sql = format!("SELECT key FROM {}", layout.rows());
        let mut statement = self.connection.prepare_cached(&sql)?;
        let keys = statement.query_map([], |row| row.get(0))?;
        Ok(keys.collect::<Result<_, _>>()?)
    }

    /// Writes changes of a kind, all or none of them, and up to where it is then.
    pub(crate) fn apply(
        &mut self,
        tables: &Tables,
        ops: &[Op],
        reached: Reached,
    ) -> Result<(), StorageError> {
        let layout = &tables.layout;
        let transaction = self.connection.transaction()?;
        for op in ops {
            match (op, &tables.sealed) {
                (
                    Op::Put {
                        row,
                        json,
                        is_initial,
                    },
                    Some(sealed),
                ) => sealed::put(&transaction, sealed, row, json, *is_initial)?,
                (Op::Delete(key), Some(sealed)) => sealed::delete(&transaction, sealed, key)?,
                (
                    Op::Put {
                        row,
                        json,
                        is_initial,
                    },
                    None,
                ) => {
                    if !is_initial || !is_known(&transaction, layout, row, json)? {
                        put(&transaction, layout, row, json)?;
                    }
                }
                (Op::Delete(key), None) => delete(&transaction, layout, key)?,
            }
        }
        let number = layout.number();
        let Reached { version, change } = reached;
        transaction
            .prepare_cached("UPDATE kinds SET version = ?2, change = ?3 WHERE number = ?1")?
            .execute((number, version.cast_signed(), change.cast_signed()))?;
        Ok(transaction.commit()?)
    }
}

/// Returns whether a row is there in this very state.
fn is_known(
    transaction: &Transaction<'_>,
    layout: &Layout,
    row: &Row,
    json: &[u8],
) -> Result<bool, StorageError> {
    let sql = format!(
        "SELECT 1 FROM {} AS r JOIN {} AS j ON j.id = r.id WHERE r.key = ?1 AND r.version = ?2 AND j.json = ?3",
        layout.rows(),
        layout.json()
    );
    let known = prepare(transaction, &sql)?.exists((row.key.as_str(), &row.version, json))?;
    Ok(known)
}

fn put(
    transaction: &Transaction<'_>,
    layout: &Layout,
    row: &Row,
    json: &[u8],
) -> Result<(), StorageError> {
    let sql = format!("SELECT id FROM {} WHERE key = ?1", layout.rows());
    let known: Option<i64> = prepare(transaction, &sql)?
        .query_row([row.key.as_str()], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        clear(transaction, layout, id)?;
    }
    let id = put_row(transaction, layout, row, known)?;
    prepare(
        transaction,
        &format!("INSERT INTO {} VALUES (?1, ?2)", layout.json()),
    )?
    .execute((id, json))?;
    let sql = format!(
        "INSERT OR IGNORE INTO {} VALUES (?1, ?2, ?3)",
        layout.labels()
    );
    let mut labels = prepare(transaction, &sql)?;
    for (label, value) in row.labels.iter() {
        labels.execute((id, label, value))?;
    }
    let sql = format!(
        "INSERT OR IGNORE INTO {} VALUES (?1, ?2, ?3)",
        layout.owners()
    );
    let mut owners = prepare(transaction, &sql)?;
    for owner in &row.owners {
        owners.execute((id, &owner.uid, owner.is_controller))?;
    }
    for place in layout.places(true) {
        let mut values: Vec<Vec<Param>> = Vec::new();
        values.extend(
            row.cells[place]
                .iter()
                .map(|value| columns(layout.is_natural(place), Some(value))),
        );
        let marks = if layout.is_natural(place) {
            "?1, ?2, ?3"
        } else {
            "?1, ?2"
        };
        let sql = format!(
            "INSERT OR IGNORE INTO {} VALUES ({marks})",
            layout.many(place)
        );
        let mut statement = prepare(transaction, &sql)?;
        for value in values {
            let params = std::iter::once(Param::Integer(id)).chain(value);
            statement.execute(params_from_iter(params))?;
        }
    }
    put_words(transaction, layout, row, id)
}

/// Writes the row itself; returns its id.
fn put_row(
    transaction: &Transaction<'_>,
    layout: &Layout,
    row: &Row,
    id: Option<i64>,
) -> Result<i64, StorageError> {
    let mut sql = Statement::default();
    sql.push(&format!(
        "INSERT OR REPLACE INTO {} VALUES (",
        layout.rows()
    ));
    let fixed = [
        id.map_or(Param::Null, Param::Integer),
        Param::Text(row.key.as_str().to_owned()),
        Param::Text(row.version.to_string()),
    ];
    let fields = layout
        .places(false)
        .flat_map(|place| columns(layout.is_natural(place), row.cells[place].first()));
    sql.join(fixed.into_iter().chain(fields), ", ", Statement::bind);
    sql.push(")");
    prepare(transaction, &sql.text)?.execute(params_from_iter(&sql.params))?;
    Ok(id.unwrap_or_else(|| transaction.last_insert_rowid()))
}

/// Writes the words of the searchable fields.
fn put_words(
    transaction: &Transaction<'_>,
    layout: &Layout,
    row: &Row,
    id: i64,
) -> Result<(), StorageError> {
    if !layout.is_searchable() {
        return Ok(());
    }
    let values = layout.searchable().flat_map(|place| &row.cells[place]);
    let words: Vec<String> = values
        .flat_map(|value| words_of(&value.to_string()).collect::<Vec<_>>())
        .collect();
    let sql = format!(
        "INSERT INTO {} (rowid, words) VALUES (?1, ?2)",
        layout.words()
    );
    prepare(transaction, &sql)?.execute((id, words.join(" ")))?;
    Ok(())
}

fn delete(
    transaction: &Transaction<'_>,
    layout: &Layout,
    key: &ObjectKey,
) -> Result<(), StorageError> {
    let sql = format!("DELETE FROM {} WHERE key = ?1 RETURNING id", layout.rows());
    let id: Option<i64> = prepare(transaction, &sql)?
        .query_row([key.as_str()], |row| row.get(0))
        .optional()?;
    match id {
        Some(id) => clear(transaction, layout, id),
        None => Ok(()),
    }
}

/// Deletes all that belongs to a row.
fn clear(transaction: &Transaction<'_>, layout: &Layout, id: i64) -> Result<(), StorageError> {
    for table in layout.tables().into_iter().skip(1) {
        let column = if table == layout.words() {
            "rowid"
        } else {
            "id"
        };
        prepare(
            transaction,
            &format!("DELETE FROM {table} WHERE {column} = ?1"),
        )?
        .execute([id])?;
    }
    Ok(())
}

/// Returns the columns of a value, as it is shown, and as it is compared if that differs.
fn columns(is_natural: bool, value: Option<&Value>) -> Vec<Param> {
    let compared = value.map_or(Param::Null, Param::of);
    match value {
        _ if !is_natural => vec![compared],
        Some(value) => vec![Param::Text(value.to_string()), compared],
        None => vec![Param::Null, Param::Null],
    }
}

fn prepare<'a>(
    transaction: &'a Transaction<'_>,
    sql: &str,
) -> Result<CachedStatement<'a>, StorageError> {
    Ok(transaction.prepare_cached(sql)?)
}
