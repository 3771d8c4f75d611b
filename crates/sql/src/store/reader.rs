//! Answering queries, each from one state of the cache.

use std::collections::HashMap;

use lariat_core::Gvk;

use super::counts::summary;
use crate::associated::Associated;
use crate::param::{List, Param};
use crate::query::{Cursor, Part, Plan, QueryError};
use crate::read::{ByteLimit, FoundObject, Read, ReadError, Weight};
use crate::revision::{Position, Revision};
use crate::schema::Schema;
use crate::sealed::{self, Sealed};
use crate::sql::{Connection, From, Layout, Select, Statement, StorageError, Transaction, sizes};

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
    limit: Option<&ByteLimit>,
) -> Result<Read, ReadError> {
    // One transaction, so that objects, counts and the revision are of one state.
    connection.within(Transaction::Reads, |connection| {
        read_within(connection, of, plan, limit)
    })
}

fn read_within(
    connection: &mut dyn Connection,
    of: &Tables,
    plan: &Plan,
    limit: Option<&ByteLimit>,
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
        return sealed::read(connection, sealed, schema, plan, limit, answer);
    }
    let mut counted = Weight::new(limit);
    for by in &plan.summaries {
        let counts = summary(connection, &select, by, &mut counted)?;
        answer.summaries.push(counts);
    }
    let mut rows = part(connection, &select, &mut answer, limit)?;
    if let Some(limit) = limit {
        let fit = limit.fit(plan, counted.bytes, &rows.sizes(connection, layout)?)?;
        rows.cut(fit);
    }
    answer.found = objects(connection, layout, &rows.found)?;
    answer.next = rows.next(plan, &answer)?;
    Ok(answer)
}

/// The rows of an answer, before their objects are read.
struct Rows {
    /// Numbers and sort keys.
    found: Vec<(i64, Vec<Param>)>,
    keys: Weight,
    /// Whether more rows follow, if the part may end before them.
    has_more: bool,
}

impl Rows {
    fn new(limit: Option<&ByteLimit>) -> Self {
        Self {
            found: Vec::new(),
            keys: Weight::new(limit),
            has_more: false,
        }
    }

    /// Adds the rows of a statement.
    ///
    /// Once their sort keys have more bytes than an answer may have, more rows are not needed.
    fn add(
        &mut self,
        connection: &mut dyn Connection,
        sql: &Statement,
    ) -> Result<(), StorageError> {
        connection.query(sql, &mut |mut columns| {
            if self.is_full() {
                return Ok(());
            }
            let (id, keys) = (columns.integer()?, columns.rest());
            self.keys.add(keys.iter().map(Param::bytes).sum());
            self.found.push((id, keys));
            Ok(())
        })
    }

    /// Returns whether the last row is beyond the limit; the first one never is.
    fn is_full(&self) -> bool {
        self.keys.bytes > self.keys.most && self.found.len() > 1
    }

    /// Returns the sizes of the rows, with their sort keys.
    fn sizes(
        &self,
        connection: &mut dyn Connection,
        layout: &Layout,
    ) -> Result<Vec<u64>, StorageError> {
        let ids = self.found.iter().map(|(id, _)| *id).collect();
        let mut sizes = sizes(connection, &layout.json(), ids)?;
        let bytes = |keys: &[Param]| keys.iter().map(Param::bytes).sum::<usize>() as u64;
        let with_keys = |(id, keys): &(i64, Vec<Param>)| {
            let object = sizes.remove(id).unwrap_or_default();
            object.saturating_add(bytes(keys))
        };
        Ok(self.found.iter().map(with_keys).collect())
    }

    fn cut(&mut self, fit: usize) {
        self.has_more |= fit < self.found.len();
        self.found.truncate(fit);
    }

    /// Returns the cursor of the next rows.
    fn next(&self, plan: &Plan, answer: &Read) -> Result<Option<String>, ReadError> {
        let last = self.found.last().filter(|_| self.has_more);
        let Some((_, keys)) = last else {
            return Ok(None);
        };
        // The next answer begins after this row, whatever is created or deleted before it.
        let cursor = Cursor {
            revision: revision_of_cursor(plan, answer)?,
            keys: keys.clone(),
        };
        let next = cursor.write(plan, None).map_err(StorageError::from)?;
        Ok(Some(next))
    }
}

/// Returns the revision that the next part must reach.
///
/// A user who does not see all objects gets the highest version of those in the answers so far. The version of the kind
/// would show when other objects change.
fn revision_of_cursor(plan: &Plan, answer: &Read) -> Result<Revision, QueryError> {
    if !plan.is_restricted() {
        return Ok(answer.revision);
    }
    let before = match &plan.part {
        Part::After {
            cursor: Some(text), ..
        } => Cursor::read(text, plan, None)?.revision.version(),
        _ => 0,
    };
    let versions = answer.found.iter().map(|found| found.version.parse());
    let highest = versions.flatten().fold(before, u64::max);
    Ok(Revision::new(highest, None))
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

/// Finds the rows of the part that the query requests, and records their total.
fn part(
    connection: &mut dyn Connection,
    select: &Select<'_>,
    answer: &mut Read,
    limit: Option<&ByteLimit>,
) -> Result<Rows, ReadError> {
    let plan = select.plan;
    let mut rows = Rows::new(limit);
    match &plan.part {
        Part::Nothing => answer.total = Some(count(connection, select)?),
        Part::All => rows.add(connection, &select.page(None, &From::Offset(0)))?,
        Part::Page { number, size } => {
            // The largest number that both databases accept.
            let most = i64::MAX.unsigned_abs();
            let offset = (number - 1).saturating_mul(*size).min(most);
            answer.total = Some(count(connection, select)?);
            let page = select.page(Some((*size).min(most)), &From::Offset(offset));
            rows.add(connection, &page)?;
        }
        Part::After { limit, cursor } => {
            // One more, to find out whether others follow.
            let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
            match cursor {
                None => {
                    let page = select.page(Some(more(limit, 0)), &From::Offset(0));
                    rows.add(connection, &page)?;
                }
                Some(text) => {
                    let keys = Cursor::read(text, plan, None)?.keys;
                    // Range by range, so that each is read from an index, until there are enough.
                    for range in select.behind(&keys) {
                        let left = more(limit, rows.found.len());
                        if left == 0 || rows.is_full() {
                            break;
                        }
                        rows.add(connection, &select.page(Some(left), &From::Range(range)))?;
                    }
                }
            }
            rows.cut(limit);
        }
    }
    Ok(rows)
}

/// Returns how many rows are missing to one more than the limit.
fn more(limit: usize, found: usize) -> u64 {
    let more = limit.saturating_add(1).saturating_sub(found);
    u64::try_from(more)
        .unwrap_or(u64::MAX)
        .min(i64::MAX.unsigned_abs())
}

fn count(connection: &mut dyn Connection, select: &Select<'_>) -> Result<u64, StorageError> {
    let count = connection
        .first(&select.count())?
        .map_or(Ok(0), |mut count| count.integer())?;
    Ok(count.unsigned_abs())
}
