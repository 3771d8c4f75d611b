//! Writing encrypted rows.

use std::collections::{HashMap, HashSet};

use super::{Sealed, row};
use crate::op::Op;
use crate::param::{Arg, List};
use crate::sql::{Connection, Statement, StorageError};

/// Writes changes of different rows; returns whether anything has changed.
pub(crate) fn write(
    connection: &mut dyn Connection,
    of: &Sealed,
    ops: &[&Op],
) -> Result<bool, StorageError> {
    let hashed: Vec<([u8; 16], &Op)> = ops
        .iter()
        .map(|op| (of.hash(op.key().as_str()), *op))
        .collect();
    let same = unchanged(connection, of, &hashed)?;
    let changed = || hashed.iter().filter(|(hash, _)| !same.contains(hash));
    let gone: Vec<Vec<u8>> = changed().map(|(hash, _)| hash.to_vec()).collect();
    if gone.is_empty() {
        return Ok(false);
    }
    let mut sql = Statement::new(of.dialect, &format!("DELETE FROM {} WHERE hash", of.table));
    sql.among(List::Bytes(gone));
    let deleted = connection.execute(&sql)?;
    let keys = of.keys.current();
    let mut rows = Vec::new();
    for (hash, op) in changed() {
        let Op::Put { row, json, .. } = op else {
            continue;
        };
        let content = keys.seal(&of.context(hash, "row"), &row::write(row))?;
        let json = keys.seal(&of.context(hash, "json"), json)?;
        rows.push(vec![
            Arg::bytes(hash),
            Arg::Bytes(content.into()),
            Arg::Bytes(json.into()),
        ]);
    }
    connection.insert(&format!("{} (hash, content, json)", of.table), &rows)?;
    Ok(deleted > 0 || !rows.is_empty())
}

/// Returns the hashes of initial changes that are stored already.
///
/// Their JSON is the same, and their row can be decrypted.
fn unchanged(
    connection: &mut dyn Connection,
    of: &Sealed,
    ops: &[([u8; 16], &Op)],
) -> Result<HashSet<[u8; 16]>, StorageError> {
    let initial: HashMap<[u8; 16], &Vec<u8>> = ops
        .iter()
        .filter_map(|(hash, op)| match op {
            Op::Put {
                json,
                is_initial: true,
                ..
            } => Some((*hash, json)),
            _ => None,
        })
        .collect();
    let mut same = HashSet::new();
    if initial.is_empty() {
        return Ok(same);
    }
    let select = format!("SELECT hash, content, json FROM {} WHERE hash", of.table);
    let mut sql = Statement::new(of.dialect, &select);
    let hashes = initial.keys().map(|hash| hash.to_vec());
    sql.among(List::Bytes(hashes.collect()));
    let keys = of.keys.current();
    connection.query(&sql, &mut |mut columns| {
        let (hash, content, known) = (columns.bytes()?, columns.bytes()?, columns.bytes()?);
        let Ok(hash) = <[u8; 16]>::try_from(hash) else {
            return Ok(());
        };
        // A row with an old or damaged key is written again.
        let opens = keys.open(&of.context(&hash, "row"), &content).is_ok();
        let known = keys.open(&of.context(&hash, "json"), &known);
        let is_same = initial
            .get(&hash)
            .is_some_and(|json| known.is_ok_and(|known| *known == **json));
        if opens && is_same {
            same.insert(hash);
        }
        Ok(())
    })?;
    Ok(same)
}
