//! Writing encrypted rows.

use lariat_core::ObjectKey;
use rusqlite::{OptionalExtension, Transaction};

use super::Sealed;
use super::row;
use crate::row::Row;
use crate::sqlite::StorageError;

/// Writes a row, unless it is there in this very state.
pub(crate) fn put(
    transaction: &Transaction<'_>,
    of: &Sealed,
    row: &Row,
    json: &[u8],
    is_initial: bool,
) -> Result<(), StorageError> {
    let hash = of.hash(row.key.as_str());
    if is_initial && is_known(transaction, of, &hash, json)? {
        return Ok(());
    }
    let keys = of.keys.current();
    let content = keys.seal(&of.context(&hash, "row"), &row::write(row))?;
    let json = keys.seal(&of.context(&hash, "json"), json)?;
    let sql = format!(
        "INSERT INTO {} (hash, content, json) VALUES (?1, ?2, ?3)
         ON CONFLICT (hash) DO UPDATE SET content = excluded.content, json = excluded.json",
        of.table
    );
    transaction
        .prepare_cached(&sql)?
        .execute((hash, content, json))?;
    Ok(())
}

pub(crate) fn delete(
    transaction: &Transaction<'_>,
    of: &Sealed,
    key: &ObjectKey,
) -> Result<(), StorageError> {
    let sql = format!("DELETE FROM {} WHERE hash = ?1", of.table);
    transaction
        .prepare_cached(&sql)?
        .execute([of.hash(key.as_str())])?;
    Ok(())
}

/// Returns whether the JSON is there, and its row can be opened.
fn is_known(
    transaction: &Transaction<'_>,
    of: &Sealed,
    hash: &[u8; 16],
    json: &[u8],
) -> Result<bool, StorageError> {
    let sql = format!("SELECT content, json FROM {} WHERE hash = ?1", of.table);
    let known: Option<(Vec<u8>, Vec<u8>)> = transaction
        .prepare_cached(&sql)?
        .query_row([hash], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((content, known)) = known else {
        return Ok(false);
    };
    let keys = of.keys.current();
    let opens = keys.open(&of.context(hash, "row"), &content).is_ok();
    let known = keys.open(&of.context(hash, "json"), &known);
    Ok(opens && known.is_ok_and(|known| **known == *json))
}
