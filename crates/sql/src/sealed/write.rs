//! Writing encrypted rows.

use std::collections::{HashMap, HashSet};

use super::{Place, Sealed, row};
use crate::op::Op;
use crate::param::{Arg, List};
use crate::sql::{Connection, Statement, StorageError};

/// Writes changes of different rows; returns whether anything has changed.
pub(crate) fn write(
    connection: &mut dyn Connection,
    of: &Sealed,
    ops: &[&Op],
) -> Result<bool, StorageError> {
    let placed: Vec<(Place, &Op)> = ops.iter().map(|op| (of.place(op.key()), *op)).collect();
    let same = unchanged(connection, of, &placed)?;
    let changed = || {
        placed
            .iter()
            .filter(|(place, _)| !same.contains(&place.key))
    };
    let gone: Vec<Vec<u8>> = changed().map(|(place, _)| place.key.clone()).collect();
    if gone.is_empty() {
        return Ok(false);
    }
    let mut sql = Statement::new(of.dialect, &format!("DELETE FROM {} WHERE hash", of.table));
    sql.among(List::Bytes(gone));
    let deleted = connection.execute(&sql)?;
    let keys = of.keys.current();
    let mut rows = Vec::new();
    for (place, op) in changed() {
        let Op::Put { row, json, .. } = op else {
            continue;
        };
        let content = row::write(row, of.longest);
        let content = keys.seal(&of.context(place, "row"), &content)?;
        let json = keys.seal(&of.context(place, "json"), json)?;
        rows.push(vec![
            Arg::bytes(&place.key),
            Arg::bytes(&place.namespace),
            Arg::Bytes(content.into()),
            Arg::Bytes(json.into()),
        ]);
    }
    let into = format!("{} (hash, namespace, content, json)", of.table);
    connection.insert(&into, &rows)?;
    Ok(deleted > 0 || !rows.is_empty())
}

/// Returns the hashes of the keys of initial changes that are stored already.
///
/// Their JSON is the same, and their row can be decrypted.
fn unchanged(
    connection: &mut dyn Connection,
    of: &Sealed,
    ops: &[(Place, &Op)],
) -> Result<HashSet<Vec<u8>>, StorageError> {
    let initial: HashMap<&[u8], &Vec<u8>> = ops
        .iter()
        .filter_map(|(place, op)| match op {
            Op::Put {
                json,
                is_initial: true,
                ..
            } => Some((place.key.as_slice(), json)),
            _ => None,
        })
        .collect();
    let mut same = HashSet::new();
    if initial.is_empty() {
        return Ok(same);
    }
    let select = format!(
        "SELECT hash, namespace, content, json FROM {} WHERE hash",
        of.table
    );
    let mut sql = Statement::new(of.dialect, &select);
    let hashes = initial.keys().map(|hash| hash.to_vec());
    sql.among(List::Bytes(hashes.collect()));
    let keys = of.keys.current();
    connection.query(&sql, &mut |mut columns| {
        let place = Place::read(&mut columns)?;
        let (content, known) = (columns.bytes()?, columns.bytes()?);
        // A row with an unknown key, or a damaged one, is written again.
        let opens = keys.open(&of.context(&place, "row"), &content).is_ok();
        let known = keys.open(&of.context(&place, "json"), &known);
        let is_same = initial
            .get(place.key.as_slice())
            .is_some_and(|json| known.is_ok_and(|known| *known == **json));
        if opens && is_same {
            same.insert(place.key);
        }
        Ok(())
    })?;
    Ok(same)
}
