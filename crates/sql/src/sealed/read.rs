//! Answering queries from encrypted rows.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use lariat_seal::Keyring;

use super::row::{Content, needs_whole, of_object};
use super::{Place, Sealed, narrow, row};
use crate::field::Value;
use crate::param::{List, Param};
use crate::query::{Cursor, Others, Part, Plan, Target};
use crate::read::{ByteLimit, Count, FoundObject, Page, Read, ReadError, Weight};
use crate::revision::Revision;
use crate::row::Row;
use crate::schema::Schema;
use crate::sql::{Columns, Connection, Statement, StorageError, Transaction, sizes};

/// A decrypted row.
struct Opened {
    id: i64,
    row: Row,
}

/// The columns of a row that are always read.
const COLUMNS: &str = "SELECT id, hash, namespace, content FROM";

/// Returns the keys of all rows, and deletes rows that cannot be decrypted.
///
/// The informer publishes the objects of deleted rows again.
pub(crate) fn keys(
    connection: &mut dyn Connection,
    of: &Sealed,
    schema: &Schema,
) -> Result<Vec<String>, StorageError> {
    let mut keys = Vec::new();
    let mut damaged = Vec::new();
    let all = Statement::new(of.dialect, &format!("{COLUMNS} {}", of.table));
    each(connection, of, schema, &all, |id, content| {
        match content {
            Ok(Content { row, .. }) => keys.push(row.key.as_str().to_owned()),
            // Without the old key, for instance: the row is useless, and its object will be written again.
            Err(_) => damaged.push(id),
        }
        Ok(())
    })?;
    if !damaged.is_empty() {
        let delete = format!("DELETE FROM {} WHERE id", of.table);
        let mut sql = Statement::new(of.dialect, &delete);
        sql.among(List::Integers(damaged));
        connection.within(Transaction::Writes, |connection| connection.execute(&sql))?;
    }
    Ok(keys)
}

/// Answers a query, except for the revision of the answer.
pub(crate) fn read(
    connection: &mut dyn Connection,
    of: &Sealed,
    schema: &Schema,
    plan: &Plan,
    limit: Option<&ByteLimit>,
    mut answer: Read,
) -> Result<Read, ReadError> {
    let mut rows = found(connection, of, schema, plan)?;
    let mut counted = Weight::new(limit);
    for by in &plan.summaries {
        let counts = summary(&rows, &by.target, plan);
        counted.add(counts.iter().map(Count::bytes).sum());
        counted.check_counts()?;
        by.check(counts.len(), plan.most_counts.unwrap_or(usize::MAX))?;
        answer.summaries.push(counts);
    }
    // One set of keys for all rows of the query, also if they are rotated meanwhile.
    let keys = of.keys.current();
    part(&mut rows, schema, plan, &keys, &mut answer)?;
    let ids: Vec<i64> = rows.iter().map(|opened| opened.id).collect();
    if let Some(limit) = limit {
        let sizes = sizes(connection, &of.table, ids.clone())?;
        let sizes: Vec<u64> = ids
            .iter()
            .map(|id| sizes.get(id).copied().unwrap_or_default())
            .collect();
        let fit = limit.fit(plan, counted.bytes, &sizes)?;
        if fit < rows.len() {
            rows.truncate(fit);
            answer.next = next(&rows, schema, plan, &keys, answer.revision)?;
        }
    }
    // Only the selected rows: decrypting the JSON of all would take much longer.
    let mut bodies = HashMap::with_capacity(rows.len());
    let ids = rows.iter().map(|opened| opened.id).collect();
    objects(connection, of, ids, |id, json| {
        bodies.insert(id, json);
        Ok(())
    })?;
    for Opened { id, row } in rows {
        let Some(json) = bodies.remove(&id) else {
            continue;
        };
        answer.found.push(FoundObject {
            key: row.key.as_str().to_owned(),
            version: row.version.to_string(),
            json,
        });
    }
    Ok(answer)
}

/// Finds the rows that meet the query, in no particular order.
fn found(
    connection: &mut dyn Connection,
    of: &Sealed,
    schema: &Schema,
    plan: &Plan,
) -> Result<Vec<Opened>, StorageError> {
    let mut sql = Statement::new(of.dialect, &format!("{COLUMNS} {}", of.table));
    narrow::narrow(&mut sql, of, schema, plan);
    let needs_whole = needs_whole(plan);
    let (mut rows, mut partial) = (Vec::new(), Vec::new());
    let mut add = |id, row| {
        if plan.matches(schema, &row, Others::default()) {
            rows.push(Opened { id, row });
        }
    };
    each(connection, of, schema, &sql, |id, content| {
        let Content { row, is_whole } = content?;
        if is_whole || !needs_whole {
            add(id, row);
        } else if plan.covers(&row) {
            partial.push(id);
        }
        Ok(())
    })?;
    if partial.is_empty() {
        return Ok(rows);
    }
    objects(connection, of, partial, |id, json| {
        let row = of_object(schema, &json).ok_or_else(|| damaged(of))?;
        add(id, row);
        Ok(())
    })?;
    Ok(rows)
}

/// Decrypts the objects whose rows follow another one.
pub(crate) fn page(
    connection: &mut dyn Connection,
    of: &Sealed,
    after: i64,
    size: u64,
) -> Result<Page, StorageError> {
    let select = format!(
        "SELECT id, hash, namespace, json FROM {} WHERE id > ",
        of.table
    );
    let sql = Statement::new(of.dialect, &select)
        .with("", Param::Integer(after))
        .with_end(&format!(" ORDER BY id LIMIT {size}"));
    let keys = of.keys.current();
    let mut page = Page {
        objects: Vec::new(),
        last: None,
    };
    connection.query(&sql, &mut |mut columns| {
        page.last = Some(columns.integer()?);
        let (place, body) = (Place::read(&mut columns)?, columns.bytes()?);
        let json = keys.open(&of.context(&place, "json"), &body)?;
        page.objects.push(json.to_vec().into());
        Ok(())
    })?;
    Ok(page)
}

/// Reduces rows to the part that the query selects, in order.
fn part(
    rows: &mut Vec<Opened>,
    schema: &Schema,
    plan: &Plan,
    keyring: &Keyring,
    answer: &mut Read,
) -> Result<(), ReadError> {
    let total = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    if plan.part == Part::Nothing {
        answer.total = Some(total);
        rows.clear();
        return Ok(());
    }
    rows.sort_by(|one, other| plan.compare(schema, &one.row, &other.row, Others::default()));
    match &plan.part {
        Part::All | Part::Nothing => {}
        Part::Page { number, size } => {
            answer.total = Some(total);
            let first = (number - 1).saturating_mul(*size);
            cut(rows, first, *size);
        }
        Part::After { limit, cursor } => {
            let behind = match cursor {
                Some(text) => Some(Cursor::read(text, plan, Some(keyring))?.keys),
                None => None,
            };
            rows.retain(|opened| {
                let keys = || plan.keys_of(schema, &opened.row);
                behind
                    .as_ref()
                    .is_none_or(|behind| plan.compare_keys(&keys(), behind) == Ordering::Greater)
            });
            let has_more = u64::try_from(rows.len()).unwrap_or(u64::MAX) > *limit;
            cut(rows, 0, *limit);
            if has_more {
                answer.next = next(rows, schema, plan, keyring, answer.revision)?;
            }
        }
    }
    Ok(())
}

/// Returns the cursor of the rows behind these.
fn next(
    rows: &[Opened],
    schema: &Schema,
    plan: &Plan,
    keyring: &Keyring,
    revision: Revision,
) -> Result<Option<String>, StorageError> {
    let write = |last: &Opened| {
        let keys = plan.keys_of(schema, &last.row);
        Cursor { revision, keys }.write(plan, Some(keyring))
    };
    Ok(rows.last().map(write).transpose()?)
}

/// Decrypts the [`COLUMNS`] of rows, one after the other.
fn each(
    connection: &mut dyn Connection,
    of: &Sealed,
    schema: &Schema,
    sql: &Statement,
    mut look: impl FnMut(i64, Result<Content, StorageError>) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let keys = of.keys.current();
    connection.query(sql, &mut |mut columns| {
        let (id, place) = (columns.integer()?, Place::read(&mut columns)?);
        let opened = keys.open(&of.context(&place, "row"), &columns.bytes()?);
        let content = opened
            .map_err(StorageError::from)
            .and_then(|content| row::read(schema, &content).ok_or_else(|| damaged(of)));
        look(id, content)
    })
}

/// Decrypts the JSON of rows, one after the other.
fn objects(
    connection: &mut dyn Connection,
    of: &Sealed,
    ids: Vec<i64>,
    mut look: impl FnMut(i64, Vec<u8>) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let select = format!(
        "SELECT id, hash, namespace, json FROM {} WHERE id",
        of.table
    );
    let mut sql = Statement::new(of.dialect, &select);
    sql.among(List::Integers(ids));
    let keys = of.keys.current();
    connection.query(&sql, &mut |mut columns| {
        let (id, place) = (columns.integer()?, Place::read(&mut columns)?);
        let json = keys.open(&of.context(&place, "json"), &columns.bytes()?)?;
        look(id, json.to_vec())
    })
}

fn damaged(of: &Sealed) -> StorageError {
    StorageError::Row {
        kind: of.kind.clone(),
    }
}

impl Place {
    /// Takes the hashes from the next columns of a row.
    pub(super) fn read(columns: &mut Columns) -> Result<Self, StorageError> {
        Ok(Self {
            key: columns.bytes()?,
            namespace: columns.bytes()?,
        })
    }
}

fn cut(rows: &mut Vec<Opened>, first: u64, size: u64) {
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    rows.drain(..place(first).min(rows.len()));
    rows.truncate(place(size));
}

fn summary(rows: &[Opened], by: &Target, plan: &Plan) -> Vec<Count> {
    let mut counts: BTreeMap<(Value, Option<String>), u64> = BTreeMap::new();
    for Opened { row, .. } in rows {
        let mut values = Others::default().values(plan, row, by);
        values.sort();
        // An object counts once for a value.
        values.dedup();
        let namespace = row.key.namespace().filter(|_| plan.summarizes_namespaces);
        for value in values {
            *counts
                .entry((value, namespace.map(str::to_owned)))
                .or_default() += 1;
        }
    }
    let counts = counts.into_iter();
    Count::sorted(counts.map(|((value, namespace), objects)| (value, namespace, objects)))
}

impl Plan {
    /// Returns the sort keys of a row, as in a cursor.
    fn keys_of(&self, schema: &Schema, row: &Row) -> Vec<Param> {
        let key = |(target, _)| {
            let values = Others::default().values(self, row, &target);
            values.first().map_or(Param::Null, Param::of)
        };
        self.targets(schema).into_iter().map(key).collect()
    }

    /// Compares rows by their sort keys.
    fn compare_keys(&self, one: &[Param], other: &[Param]) -> Ordering {
        let last = [false, false];
        let orders = self
            .orders
            .iter()
            .map(|order| order.is_descending)
            .chain(last);
        let mut compared =
            one.iter()
                .zip(other)
                .zip(orders)
                .map(|((one, other), is_descending)| {
                    let ascending = one.compare(other);
                    if is_descending {
                        ascending.reverse()
                    } else {
                        ascending
                    }
                });
        compared
            .find(|ordering| ordering.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}
