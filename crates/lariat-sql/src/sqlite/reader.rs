//! Answering queries, each from one state of the cache.

use std::cmp::Reverse;

use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::error::StorageError;
use super::params;
use crate::association::Associated;
use crate::field::{Value, natural_key};
use crate::query::{Cursor, Part, Plan, QueryError, Summary};
use crate::revision::{Place, Revision};
use crate::schema::Schema;
use crate::sealed::{self, Sealed};
use crate::sql::{From, Layout, Param, Select, Statement};

/// The tables of a kind.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) layout: Layout,
    pub(crate) schema: Schema,
    /// The one table of an encrypted kind, which has none of the others.
    pub(crate) sealed: Option<Sealed>,
    /// Those of the kind `Namespace`, if the cache has it.
    pub(crate) namespaces: Option<Layout>,
    /// The kinds of the schema's associations, in their order.
    pub(crate) associated: Vec<Associated>,
    /// The tables of these.
    pub(crate) joined: Vec<Layout>,
}

/// What a query finds, all of it at one revision.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) found: Vec<Found>,
    /// How many there are, with those on other pages; none if that was not asked for.
    pub(crate) total: Option<u64>,
    /// Where the next answer begins; none at the end.
    pub(crate) next: Option<String>,
    pub(crate) revision: Revision,
    /// The counts of each summary.
    pub(crate) summaries: Vec<Vec<Count>>,
}

/// An object that was found.
pub(crate) struct Found {
    pub(crate) key: String,
    pub(crate) version: String,
    pub(crate) json: Vec<u8>,
}

/// How many objects have a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) value: String,
    pub(crate) namespace: Option<String>,
    pub(crate) objects: u64,
}

/// A query that cannot be answered, for one reason or another.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl std::convert::From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(error.into())
    }
}

/// Answers a query; `history` is that of the changes of this process.
pub(crate) fn read(
    connection: &mut Connection,
    of: &Tables,
    plan: &Plan,
    history: u32,
) -> Result<Read, ReadError> {
    let Tables {
        layout,
        schema,
        namespaces,
        sealed,
        associated,
        joined,
    } = of;
    // One transaction, so that objects, counts and the revision are of one state.
    let transaction = connection.transaction()?;
    let select = Select {
        layout,
        schema,
        plan,
        namespaces: namespaces.as_ref(),
        associated,
        joined,
    };
    let (version, change): (i64, i64) = transaction
        .prepare_cached("SELECT version, change FROM kinds WHERE number = ?1")?
        .query_row([layout.number()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut answer = Read {
        revision: Revision::new(
            version.unsigned_abs(),
            Some(Place {
                history,
                change: change.unsigned_abs(),
            }),
        ),
        ..Read::default()
    };
    if let Some(sealed) = sealed {
        return sealed::read(&transaction, sealed, schema, plan, answer);
    }
    for by in &plan.summaries {
        let counts = summary(&transaction, &select, by)?;
        answer.summaries.push(counts);
    }
    let ids = part(&transaction, &select, &mut answer)?;
    let sql = format!(
        "SELECT r.key, r.version, j.json FROM {} AS r JOIN {} AS j ON j.id = r.id WHERE r.id = ?1",
        layout.rows(),
        layout.json()
    );
    let mut objects = transaction.prepare_cached(&sql)?;
    for (id, _) in ids {
        let object = objects.query_row([id], |row| {
            let (key, version, json) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Found { key, version, json })
        });
        answer.found.extend(object.optional()?);
    }
    Ok(answer)
}

/// Finds the rows of the part that the query asks for; notes their total, and where the next part begins.
fn part(
    connection: &Connection,
    select: &Select<'_>,
    answer: &mut Read,
) -> Result<Vec<(i64, Vec<Param>)>, ReadError> {
    let plan = select.plan;
    let page = |limit, from: &From| ids(connection, &select.page(limit, from));
    match &plan.part {
        Part::Nothing => {
            answer.total = Some(count(connection, &select.count())?);
            Ok(Vec::new())
        }
        Part::All => Ok(page(None, &From::Offset(0))?),
        Part::Page { number, size } => {
            answer.total = Some(count(connection, &select.count())?);
            let most = i64::MAX.unsigned_abs();
            let offset = (number - 1).saturating_mul(*size).min(most);
            Ok(page(Some((*size).min(most)), &From::Offset(offset))?)
        }
        Part::After { limit, cursor } => {
            // One more, to know whether others follow.
            let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
            let mut found = Vec::new();
            match cursor {
                None => found = page(Some(more(limit, 0)), &From::Offset(0))?,
                Some(text) => {
                    let keys = Cursor::read(text, plan, None)?.keys;
                    for range in select.behind(&keys) {
                        let left = more(limit, found.len());
                        if left == 0 {
                            break;
                        }
                        found.extend(page(Some(left), &From::Range(range))?);
                    }
                }
            }
            if found.len() > limit {
                found.truncate(limit);
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

/// Returns ids and the keys of the order.
fn ids(connection: &Connection, sql: &Statement) -> rusqlite::Result<Vec<(i64, Vec<Param>)>> {
    let mut statement = connection.prepare_cached(&sql.text)?;
    let columns = statement.column_count();
    let rows = statement.query_map(params_from_iter(&sql.params), |row| {
        let keys = (1..columns).map(|column| params::read(row.get_ref(column)?));
        Ok((row.get(0)?, keys.collect::<rusqlite::Result<_>>()?))
    })?;
    rows.collect()
}

fn count(connection: &Connection, sql: &Statement) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare_cached(&sql.text)?;
    let count: i64 = statement.query_row(params_from_iter(&sql.params), |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

fn summary(
    connection: &Connection,
    select: &Select<'_>,
    by: &Summary,
) -> rusqlite::Result<Vec<Count>> {
    let sql = select.summary(&by.target);
    let mut statement = connection.prepare_cached(&sql.text)?;
    let counts = statement.query_map(params_from_iter(&sql.params), |row| {
        let value = params::value(by.of, &params::read(row.get_ref(0)?)?);
        let (objects, namespace): (i64, Option<String>) = (row.get(1)?, row.get(2)?);
        Ok(value.map(|value| (value, namespace, objects.unsigned_abs())))
    })?;
    let counts: Vec<_> = counts.collect::<rusqlite::Result<_>>()?;
    Ok(Count::sorted(counts.into_iter().flatten()))
}

impl Count {
    /// Makes counts in their order: most objects first, then by value and namespace, whatever database has counted.
    pub(crate) fn sorted(
        counts: impl IntoIterator<Item = (Value, Option<String>, u64)>,
    ) -> Vec<Self> {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_cached_key(|(value, namespace, objects)| {
            // The key of a natural text is made once.
            let (natural, other) = match value {
                Value::Natural(text) => (Some(natural_key(text)), None),
                value => (None, Some(value.clone())),
            };
            (Reverse(*objects), natural, other, namespace.clone())
        });
        let counts = counts.into_iter();
        let counts = counts.map(|(value, namespace, objects)| Self {
            value: value.to_string(),
            namespace,
            objects,
        });
        counts.collect()
    }
}
