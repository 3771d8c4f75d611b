//! The statements of a query.

use super::layout::Column;
use super::{Dialect, Layout, List, Param, Statement};
use lariat_core::ObjectKey;

use crate::access::Access;
use crate::query::{Check, Comparison, Namespaces, Plan, Target, Test};
use crate::schema::Schema;

/// Makes the statements of a query on a kind.
pub(crate) struct Select<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) schema: &'a Schema,
    pub(crate) plan: &'a Plan,
    /// The tables of the kind `Namespace`, if the cache has it.
    pub(crate) namespaces: Option<&'a Layout>,
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

    /// Counts them by the values of a field or label, and by namespace if that is asked for.
    ///
    /// Columns are the value as it is shown, its count, and the namespace.
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
        }
        self.conditions(&mut sql);
        sql.push(&format!(
            " AND {value} IS NOT NULL GROUP BY 1, 3 ORDER BY 2 DESC, 1, 3 NULLS FIRST"
        ));
        sql
    }

    /// Selects ids and the keys of the order, from an offset on or within a range.
    pub(crate) fn page(&self, limit: Option<u64>, from: &From) -> Statement {
        let keys = self.plan.targets(self.schema);
        let mut sql = self.statement("SELECT r.id");
        for (number, (target, _)) in keys.iter().enumerate() {
            sql.push(&format!(", {}", self.key(number, target)));
        }
        sql.push(&format!(" FROM {} AS r", self.layout.rows()));
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
                let key = self.key(number, target);
                let order = if *is_descending {
                    "DESC NULLS FIRST"
                } else {
                    "ASC NULLS LAST"
                };
                sql.push(&format!("{key} {order}"));
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

    /// Returns the column of a key.
    fn key(&self, number: usize, target: &Target) -> String {
        match target {
            Target::Label(_) => format!("k{number}.value"),
            Target::Field(place) => format!("r.{}", self.layout.column(*place).compared),
        }
    }

    /// Returns the ranges of what comes behind the row with these keys, in their order.
    ///
    /// First those that are equal in all keys but the last, then in all but the last two, and so on: each is one range of an
    /// index, where one condition for all of them would be none.
    pub(crate) fn behind(&self, keys: &[Param]) -> Vec<Range> {
        let directions: Vec<bool> = self
            .plan
            .targets(self.schema)
            .iter()
            .map(|(_, is_descending)| *is_descending)
            .collect();
        let lasts = (0..keys.len()).rev();
        let ranges = lasts.flat_map(|last| {
            let bounds = match (&keys[last], directions[last]) {
                // Nothing comes behind what has no value, but other keys.
                (Param::Null, false) => Vec::new(),
                (Param::Null, true) => vec![Bound::NotNull],
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

    /// Adds that the keys of a row are in a range.
    fn range(&self, range: &Range, sql: &mut Statement) {
        let keys = self.plan.targets(self.schema);
        for (number, value) in range.equal.iter().enumerate() {
            let key = self.key(number, &keys[number].0);
            if *value == Param::Null {
                sql.push(&format!(" AND {key} IS NULL"));
            } else {
                sql.push(&format!(" AND {key} = "));
                sql.bind(value.clone());
            }
        }
        let last = range.equal.len();
        let key = self.key(last, &keys[last].0);
        let (operator, value) = match &range.bound {
            Bound::Above(value) => (">", value),
            Bound::Below(value) => ("<", value),
            Bound::Null => return sql.push(&format!(" AND {key} IS NULL")),
            Bound::NotNull => return sql.push(&format!(" AND {key} IS NOT NULL")),
        };
        sql.push(&format!(" AND {key} {operator} "));
        sql.bind(value.clone());
    }

    /// Adds the conditions of the query.
    fn conditions(&self, sql: &mut Statement) {
        sql.push(" WHERE TRUE");
        for access in self.plan.accesses.iter().filter(|it| !it.is_everything()) {
            allowed(access, sql);
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

    /// Adds that words are found, and one that begins with the last one.
    fn words(&self, others: &[String], last: &str, sql: &mut Statement) {
        let words = self.layout.words();
        match self.layout.dialect() {
            Dialect::Sqlite => {
                sql.push(&format!(
                    " AND r.id IN (SELECT rowid FROM {words} WHERE {words} MATCH "
                ));
                // Words have letters and digits only, so none ends its quotes.
                let others = others.iter().map(|word| format!("\"{word}\" "));
                let others = others.collect::<String>();
                sql.bind(Param::Text(format!("{others}\"{last}\"*")));
                sql.push(")");
            }
            Dialect::Postgres => {
                let select = format!(" AND r.id IN (SELECT id FROM {words} WHERE word");
                for word in others {
                    sql.push(&format!("{select} = "));
                    sql.bind(Param::Text(word.clone()));
                    sql.push(")");
                }
                // From the word on, and up to all texts that begin with it: a range of the index.
                sql.push(&format!("{select} >= "));
                sql.bind(Param::Text(last.to_owned()));
                sql.push(" AND starts_with(word, ");
                sql.bind(Param::Text(last.to_owned()));
                sql.push("))");
            }
        }
    }

    /// Adds that a row is in the namespaces, or not.
    fn namespaces(&self, namespaces: &Namespaces, sql: &mut Statement) {
        let values = || List::Texts(namespaces.values.clone());
        sql.push(" AND (r.f0");
        sql.among(values());
        if let (Some(label), Some(of)) = (&namespaces.label, self.namespaces) {
            let (rows, labels) = (of.rows(), of.labels());
            sql.push(&format!(
                " OR r.f0 IN (SELECT n.f1 FROM {rows} AS n JOIN {labels} AS l ON l.id = n.id WHERE l.label = "
            ));
            sql.bind(Param::Text(label.clone()));
            sql.push(" AND l.value");
            sql.among(values());
            sql.push(")");
        }
        let is = if namespaces.is_negated { "NOT " } else { "" };
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
                check(&test.check, &Column::plain("value"), sql);
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
        }
        if test.is_negated {
            // A comparison with a value that is missing is neither true nor false.
            sql.push(") IS NOT TRUE");
        }
    }
}

/// Adds that a user may see a row.
fn allowed(access: &Access, sql: &mut Statement) {
    let namespaces = access.namespaces().map(str::to_owned);
    let names = access.names().flat_map(|(namespace, names)| {
        let key = move |name: &str| match namespace {
            Some(namespace) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster(name),
        };
        names.map(move |name| key(name).as_str().to_owned())
    });
    sql.push(" AND (r.f0");
    sql.among(List::Texts(namespaces.collect()));
    sql.push(" OR r.key");
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

/// Adds a check of a column, which is compared in one form and shown in another.
fn check(check: &Check, column: &Column, sql: &mut Statement) {
    let Column { compared, shown } = column;
    match check {
        Check::Exists => sql.push(&format!("{compared} IS NOT NULL")),
        Check::OneOf(values) => match values.as_slice() {
            [] => sql.push("FALSE"),
            [value] => {
                sql.push(&format!("{compared} = "));
                sql.bind(Param::of(value));
            }
            values => {
                sql.push(&format!("{compared} IN ("));
                sql.join(values, ", ", |sql, value| sql.bind(Param::of(value)));
                sql.push(")");
            }
        },
        Check::HasPart(part) => {
            // Not LIKE, in which some characters of the text would have a meaning.
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
            sql.push(&format!("{compared} {operator} "));
            sql.bind(Param::of(value));
        }
    }
}
