//! Selects: the statements of a query.

use lariat_core::ObjectKey;

use super::layout::Column;
use super::{BEGINNING, Dialect, Layout, Statement};
use crate::access::Access;
use crate::associated::Associated;
use crate::param::{List, Param};
use crate::query::{Check, Comparison, Namespaces, Plan, Target, Test};
use crate::schema::Schema;

/// Generates the statements of a query on a kind.
pub(crate) struct Select<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) schema: &'a Schema,
    pub(crate) plan: &'a Plan,
    /// The tables of the kind `Namespace`, if the cache has it.
    pub(crate) namespaces: Option<&'a Layout>,
    /// The kinds of the schema's associations, in order.
    pub(crate) associated: &'a [Associated],
    /// The tables of the associated kinds.
    pub(crate) joined: &'a [Layout],
}

impl Select<'_> {
    fn statement(&self, text: &str) -> Statement {
        Statement::new(self.layout.dialect(), text)
    }

    /// Counts the objects that meet the conditions.
    pub(crate) fn count(&self) -> Statement {
        let mut sql = self.statement("SELECT count(*)");
        sql.push(&format!(" FROM {} AS r", self.layout.rows()));
        self.conditions(&mut sql);
        sql
    }

    /// Counts these objects by the values of a field or label.
    ///
    /// If the query requests it, the counts are by namespace as well. The columns are the value as it is returned, its
    /// count, and the namespace.
    pub(crate) fn summary(&self, by: &Target) -> Statement {
        let mut sql = self.statement("SELECT ");
        let rows = self.layout.rows();
        let namespace = if self.plan.summarizes_namespaces {
            "r.f0"
        } else {
            "NULL"
        };
        let value = match by {
            Target::Label(_) => "v.value".to_owned(),
            Target::Field(place) if self.layout.is_many(*place) => {
                format!("v.{}", self.layout.many_column(*place).shown)
            }
            Target::Field(place) => format!("r.{}", self.layout.column(*place).shown),
            Target::Associated(..) => "v.value".to_owned(),
        };
        sql.push(&format!("{value}, count(*), {namespace} FROM {rows} AS r"));
        match by {
            Target::Label(key) => {
                sql.push(&format!(
                    " JOIN {} AS v ON v.id = r.id AND v.label = ",
                    self.layout.labels()
                ));
                sql.bind(Param::Text(key.to_string()));
            }
            Target::Field(place) if self.layout.is_many(*place) => {
                sql.push(&format!(
                    " JOIN {} AS v ON v.id = r.id",
                    self.layout.many(*place)
                ));
            }
            Target::Field(_) => {}
            Target::Associated(place, of) => {
                let shown = self.paired(*place, of).shown;
                // Each object counts once for a value, however many of its associated objects have it.
                sql.push(&format!(
                    " JOIN (SELECT DISTINCT t.id AS id, {shown} AS value"
                ));
                self.pairs(*place, of, &mut sql);
                sql.push(") AS v ON v.id = r.id");
            }
        }
        self.conditions(&mut sql);
        // By position, as the namespace may be the constant NULL.
        sql.push(&format!(" AND {value} IS NOT NULL GROUP BY 1, 3"));
        if let Some(most) = self.plan.most_counts {
            // One more than allowed, to detect that there are too many.
            sql.push(&format!(" LIMIT {}", most.saturating_add(1)));
        }
        sql
    }

    /// Selects ids and sort keys, from an offset on or within a range.
    pub(crate) fn page(&self, limit: Option<u64>, from: &From) -> Statement {
        let keys = self.plan.targets(self.schema);
        let mut sql = self.statement("SELECT r.id");
        for (number, (target, _)) in keys.iter().enumerate() {
            sql.push(&format!(", {}", self.key(number, target).compared));
        }
        self.rows_to_sort(&keys, &mut sql);
        for (number, (target, _)) in keys.iter().enumerate() {
            if let Target::Label(key) = target {
                let labels = self.layout.labels();
                sql.push(&format!(
                    " LEFT JOIN {labels} AS k{number} ON k{number}.id = r.id AND k{number}.label = "
                ));
                sql.bind(Param::Text(key.to_string()));
            }
        }
        self.conditions(&mut sql);
        if let From::Range(range) = from {
            self.range(range, &mut sql);
        }
        sql.push(" ORDER BY ");
        sql.join(
            keys.iter().enumerate(),
            ", ",
            |sql, (number, (target, is_descending))| {
                // The same column as in the cursor, or the next page would not fit.
                let key = self.key(number, target);
                let order = if *is_descending {
                    "DESC NULLS FIRST"
                } else {
                    "ASC NULLS LAST"
                };
                if key.is_long {
                    // The index is in this order of beginnings; only rows with the same beginning are sorted.
                    sql.push(&format!("substr({}, {BEGINNING}) {order}, ", key.compared));
                }
                sql.push(&format!("{} {order}", key.compared));
            },
        );
        if let Some(limit) = limit {
            sql.push(&format!(" LIMIT {limit}"));
        }
        if let From::Offset(offset) = from
            && *offset > 0
        {
            sql.push(&format!(" OFFSET {offset}"));
        }
        sql
    }

    /// Returns the column of a sort key.
    fn key(&self, number: usize, target: &Target) -> Column {
        match target {
            Target::Label(_) => self.label_value().of(&format!("k{number}")),
            Target::Field(place) => self.layout.column(*place).of("r"),
            Target::Associated(..) => Column::computed(&format!("r.s{number}")),
        }
    }

    pub(super) fn label_value(&self) -> Column {
        Column::of_texts("value", self.layout.dialect())
    }

    /// Returns the ranges of rows after the row with these keys, in order.
    ///
    /// First those that are equal in all keys but the last, then in all but the last two, and so on. Each is one range
    /// of an index, while a single condition for all of them would not be.
    pub(crate) fn behind(&self, keys: &[Param]) -> Vec<Range> {
        let directions: Vec<bool> = self
            .plan
            .targets(self.schema)
            .iter()
            .map(|(_, is_descending)| *is_descending)
            .collect();
        // From the most specific range to the least, which is the order of the rows.
        let lasts = (0..keys.len()).rev();
        let ranges = lasts.flat_map(|last| {
            let bounds = match (&keys[last], directions[last]) {
                // Rows without a value come last: only the following keys can be greater.
                (Param::Null, false) => Vec::new(),
                // In descending order rows without a value come first, and all others follow.
                (Param::Null, true) => vec![Bound::NotNull],
                // Rows without a value follow those with one.
                (value, false) => vec![Bound::Above(value.clone()), Bound::Null],
                (value, true) => vec![Bound::Below(value.clone())],
            };
            let equal = &keys[..last];
            bounds.into_iter().map(|bound| Range {
                equal: equal.to_vec(),
                bound,
            })
        });
        ranges.collect()
    }

    /// Adds the condition that the keys of a row are in a range.
    fn range(&self, range: &Range, sql: &mut Statement) {
        let keys = self.plan.targets(self.schema);
        for (number, value) in range.equal.iter().enumerate() {
            let key = self.key(number, &keys[number].0);
            sql.push(" AND ");
            // Nothing equals NULL.
            if *value == Param::Null {
                sql.push(&format!("{} IS NULL", key.compared));
            } else {
                compares(&key, "=", value.clone(), sql);
            }
        }
        let last = range.equal.len();
        let key = self.key(last, &keys[last].0);
        sql.push(" AND ");
        match &range.bound {
            Bound::Above(value) => compares(&key, ">", value.clone(), sql),
            Bound::Below(value) => compares(&key, "<", value.clone(), sql),
            Bound::Null => sql.push(&format!("{} IS NULL", key.compared)),
            Bound::NotNull => sql.push(&format!("{} IS NOT NULL", key.compared)),
        }
    }

    /// Adds the conditions of the query.
    fn conditions(&self, sql: &mut Statement) {
        // So that every further condition begins with AND.
        sql.push(" WHERE TRUE");
        for access in self.plan.accesses.iter().filter(|it| !it.is_everything()) {
            allowed(access, "r", sql);
        }
        if let Some(namespaces) = &self.plan.namespaces {
            self.namespaces(namespaces, sql);
        }
        for any in &self.plan.filters {
            sql.push(" AND (");
            sql.join(any, " OR ", |sql, test| self.test(test, sql));
            sql.push(")");
        }
        if let Some((last, others)) = self.plan.words.split_last() {
            self.words(others, last, sql);
        }
    }

    /// Adds the condition that words occur, and one that begins with the last word.
    fn words(&self, others: &[String], last: &str, sql: &mut Statement) {
        let words = self.layout.words();
        match self.layout.dialect() {
            Dialect::Sqlite => {
                sql.push(&format!(
                    " AND r.id IN (SELECT rowid FROM {words} WHERE {words} MATCH "
                ));
                // Words contain only letters and digits, so none can end its quotes.
                let others = others
                    .iter()
                    .map(|word| format!("\"{word}\" "))
                    .collect::<String>();
                sql.bind(Param::Text(format!("{others}\"{last}\"*")));
                sql.push(")");
            }
            Dialect::Postgres => {
                let column = Column::of_texts("word", Dialect::Postgres);
                let select = format!(" AND r.id IN (SELECT id FROM {words} WHERE ");
                for word in others {
                    sql.push(&select);
                    compares(&column, "=", Param::Text(word.clone()), sql);
                    sql.push(")");
                }
                // A range of the index: no letter or digit sorts after the last character.
                sql.push(&format!("{select}substr(word, {BEGINNING}) >= substr("));
                sql.bind(Param::Text(last.to_owned()));
                sql.push(&format!(
                    "::text, {BEGINNING}) AND substr(word, {BEGINNING}) < substr("
                ));
                sql.bind_again();
                sql.push(&format!(
                    ", {BEGINNING}) || chr(1114111) AND starts_with(word, "
                ));
                sql.bind_again();
                sql.push("))");
            }
        }
    }

    /// Adds the condition that a row is in the namespaces, or not in them.
    fn namespaces(&self, namespaces: &Namespaces, sql: &mut Statement) {
        let values = || List::Texts(namespaces.values.clone());
        sql.push(" AND (r.f0");
        // One parameter for all names, so that the text does not depend on their number.
        sql.among(values());
        if let (Some(label), Some(of)) = (&namespaces.label, self.namespaces) {
            let (rows, labels) = (of.rows(), of.labels());
            sql.push(&format!(
                " OR r.f0 IN (SELECT n.f1 FROM {rows} AS n JOIN {labels} AS l ON l.id = n.id WHERE l.label = "
            ));
            sql.bind(Param::Text(label.clone()));
            sql.push(" AND l.value");
            sql.among(values());
            for access in self.plan.labelled.iter().filter(|it| !it.is_everything()) {
                allowed(access, "n", sql);
            }
            sql.push(")");
        }
        let is = if namespaces.is_negated { "NOT " } else { "" };
        // Not a plain NOT: the namespace of a cluster-scoped object is NULL.
        sql.push(&format!(") IS {is}TRUE"));
    }

    fn test(&self, test: &Test, sql: &mut Statement) {
        if test.is_negated {
            sql.push("(");
        }
        match &test.target {
            Target::Label(key) => {
                let labels = self.layout.labels();
                sql.push(&format!("r.id IN (SELECT id FROM {labels} WHERE label = "));
                sql.bind(Param::Text(key.to_string()));
                sql.push(" AND ");
                check(&test.check, &self.label_value(), sql);
                sql.push(")");
            }
            Target::Field(place) if self.layout.is_many(*place) => {
                let column = self.layout.many_column(*place);
                sql.push(&format!(
                    "r.id IN (SELECT id FROM {} WHERE ",
                    self.layout.many(*place)
                ));
                check(&test.check, &column, sql);
                sql.push(")");
            }
            Target::Field(place) => {
                let column = self.layout.column(*place).of("r");
                check(&test.check, &column, sql);
            }
            Target::Associated(place, of) => {
                sql.push("r.id IN (SELECT t.id");
                self.pairs(*place, of, sql);
                sql.push(" AND ");
                check(&test.check, &self.paired(*place, of), sql);
                sql.push(")");
            }
        }
        if test.is_negated {
            // A comparison with a missing value is neither true nor false.
            sql.push(") IS NOT TRUE");
        }
    }
}

/// Adds the condition that a user may see a row.
pub(super) fn allowed(access: &Access, row: &str, sql: &mut Statement) {
    let namespaces = access.namespaces().map(str::to_owned);
    let names = access.names().flat_map(|(namespace, names)| {
        let key = move |name: &str| match namespace {
            Some(namespace) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster(name),
        };
        names.map(move |name| key(name).as_str().to_owned())
    });
    sql.push(&format!(" AND ({row}.f0"));
    sql.among(List::Texts(namespaces.collect()));
    // Keys contain the namespace, so names of different namespaces cannot be confused.
    sql.push(&format!(" OR {row}.key"));
    sql.among(List::Texts(names.collect()));
    sql.push(")");
}

/// Where a page begins.
#[derive(Debug)]
pub(crate) enum From {
    Offset(u64),
    Range(Range),
}

/// Rows whose first keys equal these values, and whose next one is within a bound.
#[derive(Debug)]
pub(crate) struct Range {
    equal: Vec<Param>,
    bound: Bound,
}

#[derive(Debug)]
enum Bound {
    Above(Param),
    Below(Param),
    Null,
    NotNull,
}

/// Adds a check of a column, which may be compared and returned in different forms.
fn check(check: &Check, column: &Column, sql: &mut Statement) {
    let Column {
        compared, shown, ..
    } = column;
    match check {
        Check::Exists => sql.push(&format!("{compared} IS NOT NULL")),
        Check::OneOf(values) => one_of(column, values.iter().map(Param::of).collect(), sql),
        Check::HasPart(part) => {
            // Not `LIKE`, to which some characters of the text would be special.
            let instr = sql.dialect().position();
            sql.push(&format!("{instr}(lower({shown}), "));
            sql.bind(Param::Text(part.clone()));
            sql.push(") > 0");
        }
        Check::Compares(comparison, value) => {
            let operator = match comparison {
                Comparison::Less => "<",
                Comparison::AtMost => "<=",
                Comparison::Greater => ">",
                Comparison::AtLeast => ">=",
            };
            compares(column, operator, Param::of(value), sql);
        }
    }
}

/// Adds the condition that a column has one of these values.
fn one_of(column: &Column, values: Vec<Param>, sql: &mut Statement) {
    let compared = &column.compared;
    match values.len() {
        // `IN ()` is invalid in PostgreSQL.
        0 => sql.push("FALSE"),
        1 => sql.join(values, "", |sql, value| compares(column, "=", value, sql)),
        // The index has only beginnings, so a list comparison could not use it.
        2..=FEW if column.is_long => {
            sql.push("(");
            sql.join(values, " OR ", |sql, value| {
                compares(column, "=", value, sql);
            });
            sql.push(")");
        }
        _ => {
            sql.push(compared);
            let values = match sql.dialect() {
                Dialect::Sqlite => Err(values),
                Dialect::Postgres => List::of(values),
            };
            match values {
                Ok(values) => sql.among(values),
                Err(values) => {
                    sql.push(" IN (");
                    sql.join(values, ", ", Statement::bind);
                    sql.push(")");
                }
            }
        }
    }
}

/// How many long texts are looked up in an index; more are searched in all rows.
const FEW: usize = 16;

/// Adds a comparison of a column with a value.
///
/// If the index contains only the beginnings of values, these are compared as well.
fn compares(column: &Column, operator: &str, value: Param, sql: &mut Statement) {
    let Column {
        compared, is_long, ..
    } = column;
    if !is_long {
        sql.push(&format!("{compared} {operator} "));
        return sql.bind(value);
    }
    let of = match value {
        Param::Bytes(_) => "bytea",
        _ => "text",
    };
    // Values with the same beginning may differ after it, so beginnings are compared less strictly.
    let or_equal = match operator {
        "<" => "<=",
        ">" => ">=",
        operator => operator,
    };
    sql.push(&format!(
        "(substr({compared}, {BEGINNING}) {or_equal} substr("
    ));
    sql.bind(value);
    sql.push(&format!("::{of}, {BEGINNING}) AND {compared} {operator} "));
    // The same parameter, so that a long value is sent once.
    sql.bind_again();
    sql.push(")");
}
