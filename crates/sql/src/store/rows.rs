//! Writing the rows of a kind that is not encrypted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::field::Value;
use crate::op::Op;
use crate::param::{Arg, List};
use crate::query::words_of;
use crate::row::{DIGEST, Row};
use crate::sql::{Connection, Layout, Statement, StorageError};

/// An existing row.
struct Known {
    id: i64,
    version: String,
    digest: Vec<u8>,
}

/// A row to be written, under its number.
struct New<'a> {
    id: i64,
    row: &'a Row,
    json: &'a [u8],
    digest: [u8; DIGEST],
}

/// Returns the keys of all rows.
pub(super) fn keys(
    connection: &mut dyn Connection,
    layout: &Layout,
) -> Result<Vec<String>, StorageError> {
    let sql = format!("SELECT key FROM {}", layout.rows());
    let keys = connection.rows(&Statement::new(connection.dialect(), &sql))?;
    keys.into_iter().map(|mut key| key.text()).collect()
}

/// Writes changes of different rows; returns whether anything has changed.
///
/// All rows of a table are written together, so that a remote server gets a few requests instead of one per row. If
/// nothing indexed has changed, as with most status updates, only version and JSON are written, which have no index.
pub(super) fn write(
    connection: &mut dyn Connection,
    layout: &Layout,
    ops: &[&Op],
) -> Result<bool, StorageError> {
    let known = known(connection, layout, ops)?;
    let same = unchanged(connection, layout, ops, &known)?;
    let mut next = next_id(connection, layout)?;
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    let mut kept = Vec::new();
    for op in ops {
        let known = known.get(op.key().as_str());
        // After a restart most objects are unchanged, and writing all of them again would take long.
        if known.is_some_and(|known| same.contains(&known.id)) {
            continue;
        }
        let Op::Put { row, json, .. } = op else {
            gone.extend(known.map(|known| known.id));
            continue;
        };
        let id = known.map_or(next, |known| known.id);
        next += i64::from(known.is_none());
        let digest = row.digest();
        // Indexed values are the same, so no index is touched.
        let is_kept = known.is_some_and(|known| known.digest == digest);
        let written = New {
            id,
            row,
            json,
            digest,
        };
        if is_kept {
            kept.push(written);
        } else {
            // A changed row is deleted and inserted again: its values are spread over several tables.
            gone.extend(known.map(|known| known.id));
            new.push(written);
        }
    }
    let has_changed = !gone.is_empty() || !new.is_empty() || !kept.is_empty();
    // First, because new rows take the numbers of those they replace.
    clear(connection, layout, &gone)?;
    put(connection, layout, &new)?;
    replace_json(connection, layout, &kept)?;
    Ok(has_changed)
}

/// Finds the rows of changes.
fn known(
    connection: &mut dyn Connection,
    layout: &Layout,
    ops: &[&Op],
) -> Result<HashMap<String, Known>, StorageError> {
    let (rows, json) = (layout.rows(), layout.json());
    let select = format!(
        "SELECT r.key, r.id, r.digest, j.version FROM {rows} AS r JOIN {json} AS j ON j.id = r.id WHERE r.key"
    );
    let mut sql = Statement::new(connection.dialect(), &select);
    let keys = ops.iter().map(|op| op.key().as_str().to_owned());
    sql.among(List::Texts(keys.collect()));
    let mut known = HashMap::with_capacity(ops.len());
    connection.query(&sql, &mut |mut columns| {
        let (key, id) = (columns.text()?, columns.integer()?);
        let (digest, version) = (columns.bytes()?, columns.text()?);
        known.insert(
            key,
            Known {
                id,
                version,
                digest,
            },
        );
        Ok(())
    })?;
    Ok(known)
}

/// Returns the numbers of rows that already have the state of an initial change.
fn unchanged(
    connection: &mut dyn Connection,
    layout: &Layout,
    ops: &[&Op],
    known: &HashMap<String, Known>,
) -> Result<HashSet<i64>, StorageError> {
    let candidates: HashMap<i64, &Vec<u8>> = ops
        .iter()
        .filter_map(|op| match op {
            Op::Put {
                row,
                json,
                is_initial: true,
            } => {
                let known = known.get(row.key.as_str())?;
                // Versions alone are not enough: another cluster, or a restored one, may have used them.
                (known.version == *row.version).then_some((known.id, json))
            }
            _ => None,
        })
        .collect();
    let mut same = HashSet::new();
    if candidates.is_empty() {
        return Ok(same);
    }
    let select = format!("SELECT id, json FROM {} WHERE id", layout.json());
    let mut sql = Statement::new(connection.dialect(), &select);
    sql.among(List::Integers(candidates.keys().copied().collect()));
    connection.query(&sql, &mut |mut columns| {
        let (id, json) = (columns.integer()?, columns.bytes()?);
        if candidates.get(&id).is_some_and(|known| **known == json) {
            same.insert(id);
        }
        Ok(())
    })?;
    Ok(same)
}

/// Returns a number above those of all rows.
///
/// No other process takes it, because only one writes.
fn next_id(connection: &mut dyn Connection, layout: &Layout) -> Result<i64, StorageError> {
    let sql = format!("SELECT coalesce(max(id), 0) FROM {}", layout.rows());
    let last = connection
        .first(&Statement::new(connection.dialect(), &sql))?
        .map_or(Ok(0), |mut last| last.integer())?;
    Ok(last + 1)
}

/// Deletes rows and everything that belongs to them.
fn clear(
    connection: &mut dyn Connection,
    layout: &Layout,
    ids: &[i64],
) -> Result<(), StorageError> {
    if ids.is_empty() {
        return Ok(());
    }
    for table in layout.tables() {
        delete(connection, layout, &table, ids)?;
    }
    Ok(())
}

/// Deletes the rows of a table that belong to objects.
fn delete(
    connection: &mut dyn Connection,
    layout: &Layout,
    table: &str,
    ids: &[i64],
) -> Result<(), StorageError> {
    let id = layout.id_of(table);
    let delete = format!("DELETE FROM {table} WHERE {id}");
    let mut sql = Statement::new(connection.dialect(), &delete);
    sql.among(List::Integers(ids.to_vec()));
    connection.execute(&sql)?;
    Ok(())
}

/// Writes version and JSON of rows in which nothing else has changed.
fn replace_json(
    connection: &mut dyn Connection,
    layout: &Layout,
    kept: &[New<'_>],
) -> Result<(), StorageError> {
    if kept.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = kept.iter().map(|kept| kept.id).collect();
    delete(connection, layout, &layout.json(), &ids)?;
    put_json(connection, layout, kept)
}

fn put_json(
    connection: &mut dyn Connection,
    layout: &Layout,
    new: &[New<'_>],
) -> Result<(), StorageError> {
    // All of a table at once: one request to a remote server.
    let rows = new.iter().map(|New { id, row, json, .. }| {
        let version = Arg::text(&row.version);
        vec![Arg::Integer(*id), version, Arg::bytes(json)]
    });
    connection.insert(&layout.json(), &rows.collect::<Vec<_>>())
}

/// Writes new rows.
fn put(
    connection: &mut dyn Connection,
    layout: &Layout,
    new: &[New<'_>],
) -> Result<(), StorageError> {
    let rows: Vec<Vec<Arg<'_>>> = new.iter().map(|new| own(layout, new)).collect();
    connection.insert(&layout.rows(), &rows)?;
    put_json(connection, layout, new)?;
    let rows = new.iter().flat_map(|New { id, row, .. }| {
        // In the order of the table's key.
        let labels: BTreeMap<&str, &str> = row.labels.iter().collect();
        labels
            .into_iter()
            .map(|(label, value)| vec![Arg::Integer(*id), Arg::text(label), Arg::text(value)])
    });
    connection.insert(&layout.labels(), &rows.collect::<Vec<_>>())?;
    let rows = new.iter().flat_map(|New { id, row, .. }| {
        row.owners.iter().map(|owner| {
            let controls = Arg::Integer(owner.is_controller.into());
            vec![Arg::Integer(*id), Arg::text(&owner.uid), controls]
        })
    });
    connection.insert(&layout.owners(), &rows.collect::<Vec<_>>())?;
    for place in layout.places(true) {
        let is_natural = layout.is_natural(place);
        let rows = new.iter().flat_map(|New { id, row, .. }| {
            // A value that occurs twice in an object is one row.
            let values: BTreeSet<&Value> = row.cells[place].iter().collect();
            values.into_iter().map(move |value| {
                let mut columns = vec![Arg::Integer(*id)];
                columns.extend(args(is_natural, Some(value)));
                columns
            })
        });
        connection.insert(&layout.many(place), &rows.collect::<Vec<_>>())?;
    }
    put_words(connection, layout, new)
}

/// Returns the columns of the row itself.
fn own<'a>(layout: &Layout, new: &'a New<'_>) -> Vec<Arg<'a>> {
    let row = new.row;
    let mut columns = vec![
        Arg::Integer(new.id),
        Arg::text(row.key.as_str()),
        Arg::bytes(&new.digest),
    ];
    for place in layout.places(false) {
        columns.extend(args(layout.is_natural(place), row.cells[place].first()));
    }
    columns
}

/// Writes the words of the searchable fields.
fn put_words(
    connection: &mut dyn Connection,
    layout: &Layout,
    new: &[New<'_>],
) -> Result<(), StorageError> {
    if !layout.is_searchable() {
        return Ok(());
    }
    let rows = new.iter().flat_map(|New { id, row, .. }| {
        let values = layout.searchable().flat_map(|place| &row.cells[place]);
        let words = values.flat_map(|value| words_of(&value.to_string()).collect::<Vec<_>>());
        layout.word_rows(*id, words)
    });
    connection.insert(&layout.words_into(), &rows.collect::<Vec<_>>())
}

/// Returns the columns of a value: as returned and, if that differs, as compared.
fn args(is_natural: bool, value: Option<&Value>) -> impl Iterator<Item = Arg<'_>> {
    let compared = value.map_or(Arg::Null, Arg::of);
    let shown = is_natural.then(|| {
        let text = value.and_then(Value::as_text);
        text.map_or(Arg::Null, Arg::text)
    });
    shown.into_iter().chain([compared])
}
