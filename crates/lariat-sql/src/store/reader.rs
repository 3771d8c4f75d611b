//! Answering queries, each from one state of the cache.

use std::collections::HashMap;

use lariat_core::Gvk;

use super::counts::summary;
use crate::associated::Associated;
use crate::param::{List, Param};
use crate::query::{Cursor, Part, Plan};
use crate::read::{FoundObject, Read, ReadError};
use crate::revision::{Position, Revision};
use crate::schema::Schema;
use crate::sealed::{self, Sealed};
use crate::sql::{Connection, From, Layout, Select, Statement, StorageError, Transaction};

/// The tables of a kind.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) layout: Layout,
    pub(crate) schema: Schema,
    /// The only table of an encrypted kind.
    pub(crate) sealed: Option<Sealed>,
    /// The tables of the kind `Namespace`, if the cache has it.
    pub(crate) namespaces: Option<Layout>,
    /// The kinds of the schema's associations, in order.
    pub(crate) associated: Vec<Associated>,
    /// The tables of the associated kinds.
    pub(crate) joined: Vec<Layout>,
}

impl Tables {
    /// Returns the other kinds that a query uses, and their tables.
    fn others<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = (&'a Gvk, &'a Layout)> {
        let joined = self
            .associated
            .iter()
            .zip(&self.joined)
            .map(|(other, layout)| (other.schema.gvk(), layout));
        plan.others.iter().filter_map(move |kind| {
            let mut joined = joined.clone();
            let found = joined.find(|(of, _)| *of == kind);
            // The others are associated kinds, and namespaces.
            let namespaces = || self.namespaces.as_ref().map(|layout| (kind, layout));
            found.or_else(namespaces)
        })
    }
}

/// Answers a query.
pub(super) fn read(
    connection: &mut dyn Connection,
    of: &Tables,
    plan: &Plan,
) -> Result<Read, ReadError> {
    // One transaction, so that objects, counts and the revision are of one state.
    connection.within(Transaction::Reads, |connection| {
        read_within(connection, of, plan)
    })
}

fn read_within(
    connection: &mut dyn Connection,
    of: &Tables,
    plan: &Plan,
) -> Result<Read, ReadError> {
    let Tables {
        layout,
        schema,
        namespaces,
        sealed,
        associated,
        joined,
    } = of;
    let select = Select {
        layout,
        schema,
        plan,
        namespaces: namespaces.as_ref(),
        associated,
        joined,
    };
    let mut answer = Read {
        revision: revision(connection, layout, schema.gvk())?,
        ..Read::default()
    };
    // Fails if one of them is being written: a join with half a kind would be wrong.
    for (kind, layout) in of.others(plan) {
        revision(connection, layout, kind)?;
    }
    if let Some(sealed) = sealed {
        return sealed::read(connection, sealed, schema, plan, answer);
    }
    for by in &plan.summaries {
        let counts = summary(connection, &select, by)?;
        answer.summaries.push(counts);
    }
    let ids = part(connection, &select, &mut answer)?;
    answer.found = objects(connection, layout, &ids)?;
    Ok(answer)
}

/// Returns the revision of a kind.
fn revision(
    connection: &mut dyn Connection,
    layout: &Layout,
    kind: &Gvk,
) -> Result<Revision, ReadError> {
    let unfilled = || ReadError::Unfilled { kind: kind.clone() };
    let dialect = layout.dialect();
    let kinds = dialect.kinds();
    let select = format!("SELECT version, history, change, synced FROM {kinds} WHERE number = ");
    let sql = Statement::new(dialect, &select).with("", Param::Integer(layout.number()));
    let mut stored = connection.first(&sql)?.ok_or_else(unfilled)?;
    let (version, history) = (stored.integer()?, stored.integer()?);
    let (change, synced) = (stored.integer()?, stored.integer()?);
    // Between two states, or not filled yet.
    if synced == 0 {
        return Err(unfilled());
    }
    let place = Position {
        history: u32::try_from(history).unwrap_or_default(),
        change: change.unsigned_abs(),
    };
    Ok(Revision::new(version.unsigned_abs(), Some(place)))
}

/// Reads objects, in the order of the given numbers.
fn objects(
    connection: &mut dyn Connection,
    layout: &Layout,
    ids: &[(i64, Vec<Param>)],
) -> Result<Vec<FoundObject>, StorageError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let select = format!(
        "SELECT r.id, r.key, j.version, j.json FROM {} AS r JOIN {} AS j ON j.id = r.id WHERE r.id",
        layout.rows(),
        layout.json()
    );
    let mut sql = Statement::new(layout.dialect(), &select);
    sql.among(List::Integers(ids.iter().map(|(id, _)| *id).collect()));
    let mut found = HashMap::with_capacity(ids.len());
    connection.query(&sql, &mut |mut columns| {
        let id = columns.integer()?;
        let (key, version, json) = (columns.text()?, columns.text()?, columns.bytes()?);
        found.insert(id, FoundObject { key, version, json });
        Ok(())
    })?;
    // The database returns rows in any order.
    let ordered = ids.iter().filter_map(|(id, _)| found.remove(id));
    Ok(ordered.collect())
}

/// Finds the rows of the part that the query requests.
///
/// It also records their total, and where the next part begins.
fn part(
    connection: &mut dyn Connection,
    select: &Select<'_>,
    answer: &mut Read,
) -> Result<Vec<(i64, Vec<Param>)>, ReadError> {
    let plan = select.plan;
    let page = |connection: &mut dyn Connection, limit, from: &From| {
        ids(connection, &select.page(limit, from))
    };
    match &plan.part {
        Part::Nothing => {
            answer.total = Some(count(connection, select)?);
            Ok(Vec::new())
        }
        Part::All => Ok(page(connection, None, &From::Offset(0))?),
        Part::Page { number, size } => {
            // The largest number that both databases accept.
            let most = i64::MAX.unsigned_abs();
            let offset = (number - 1).saturating_mul(*size).min(most);
            answer.total = Some(count(connection, select)?);
            Ok(page(
                connection,
                Some((*size).min(most)),
                &From::Offset(offset),
            )?)
        }
        Part::After { limit, cursor } => {
            // One more, to find out whether others follow.
            let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
            let mut found = Vec::new();
            match cursor {
                None => found = page(connection, Some(more(limit, 0)), &From::Offset(0))?,
                Some(text) => {
                    let keys = Cursor::read(text, plan, None)?.keys;
                    // Range by range, so that each is read from an index, until there are enough.
                    for range in select.behind(&keys) {
                        let left = more(limit, found.len());
                        if left == 0 {
                            break;
                        }
                        found.extend(page(connection, Some(left), &From::Range(range))?);
                    }
                }
            }
            if found.len() > limit {
                found.truncate(limit);
                // The next answer begins after this row, whatever is created or deleted before it.
                let keys = found.last().map(|(_, keys)| keys.clone());
                let revision = answer.revision;
                let next = keys.map(|keys| Cursor { revision, keys }.write(plan, None));
                answer.next = next.transpose().map_err(StorageError::from)?;
            }
            Ok(found)
        }
    }
}

/// Returns how many rows are missing to one more than the limit.
fn more(limit: usize, found: usize) -> u64 {
    let more = limit.saturating_add(1).saturating_sub(found);
    u64::try_from(more)
        .unwrap_or(u64::MAX)
        .min(i64::MAX.unsigned_abs())
}

/// Returns ids and sort keys.
fn ids(
    connection: &mut dyn Connection,
    sql: &Statement,
) -> Result<Vec<(i64, Vec<Param>)>, StorageError> {
    let mut ids = Vec::new();
    connection.query(sql, &mut |mut columns| {
        ids.push((columns.integer()?, columns.rest()));
        Ok(())
    })?;
    Ok(ids)
}

fn count(connection: &mut dyn Connection, select: &Select<'_>) -> Result<u64, StorageError> {
    let count = connection
        .first(&select.count())?
        .map_or(Ok(0), |mut count| count.integer())?;
    Ok(count.unsigned_abs())
}
