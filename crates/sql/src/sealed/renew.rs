//! Sealing rows anew that an old data key has sealed.

use lariat_seal::Keyring;

use super::{Place, Sealed};
use crate::param::Param;
use crate::sql::{Connection, Statement, StorageError};

/// The number of rows read in one transaction, so that other writes wait briefly.
const PIECE: u64 = 20;

/// The rows that were looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renewed {
    /// The number of the last one, after which the next piece begins.
    pub(crate) last: i64,
    pub(crate) rows: usize,
}

/// A row that an old data key has sealed.
struct Old {
    id: i64,
    content: Vec<u8>,
    json: Vec<u8>,
}

/// Returns the number of rows.
pub(crate) fn rows(connection: &mut dyn Connection, of: &Sealed) -> Result<usize, StorageError> {
    let count = format!("SELECT count(*) FROM {}", of.table);
    let counted = connection.first(&Statement::new(of.dialect, &count))?;
    let rows = counted.map_or(Ok(0), |mut counted| counted.integer())?;
    Ok(usize::try_from(rows).unwrap_or_default())
}

/// Seals the next rows after another one anew.
///
/// Returns `None` if no row follows. Rows of the current data key stay as they are, and so do rows that cannot be
/// decrypted: no key is needed for them.
pub(crate) fn renew(
    connection: &mut dyn Connection,
    of: &Sealed,
    keys: &Keyring,
    after: i64,
) -> Result<Option<Renewed>, StorageError> {
    let select = format!(
        "SELECT id, hash, namespace, content, json FROM {} WHERE id > ",
        of.table
    );
    let sql = Statement::new(of.dialect, &select)
        .with("", Param::Integer(after))
        .with_end(&format!(" ORDER BY id LIMIT {PIECE}"));
    let mut looked = None;
    let mut old = Vec::new();
    connection.query(&sql, &mut |mut columns| {
        let id = columns.integer()?;
        let rows = looked.map_or(0, |Renewed { rows, .. }| rows) + 1;
        looked = Some(Renewed { last: id, rows });
        let place = Place::read(&mut columns)?;
        let (content, json) = (columns.bytes()?, columns.bytes()?);
        if [&content, &json].into_iter().all(|it| is_current(keys, it)) {
            return Ok(());
        }
        let renewed = |column, sealed: &[u8]| {
            let context = of.context(&place, column);
            let opened = keys.open(&context, sealed).ok()?;
            Some(keys.seal(&context, &opened))
        };
        if let (Some(content), Some(json)) = (renewed("row", &content), renewed("json", &json)) {
            let (content, json) = (content?, json?);
            old.push(Old { id, content, json });
        }
        Ok(())
    })?;
    for Old { id, content, json } in old {
        let sql = Statement::new(of.dialect, &format!("UPDATE {} SET content = ", of.table))
            .with("", Param::Bytes(content))
            .with(", json = ", Param::Bytes(json))
            .with(" WHERE id = ", Param::Integer(id));
        connection.execute(&sql)?;
    }
    Ok(looked)
}

fn is_current(keys: &Keyring, sealed: &[u8]) -> bool {
    Keyring::data_key_of(sealed).is_ok_and(|key| key == keys.current_data_key())
}
