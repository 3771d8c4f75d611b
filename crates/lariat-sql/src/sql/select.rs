//! The statements of a query.

use super::layout::Column;
use super::{Layout, Param, Statement};
use lariat_core::ObjectKey;
use serde_json::Value as Json;

use crate::access::Access;
use crate::association::Associated;
use crate::query::{Check, Comparison, Namespaces, Plan, Target, Test};
use crate::schema::Schema;

/// Makes the statements of a query on a kind.
pub(crate) struct Select<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) schema: &'a Schema,
    pub(crate) plan: &'a Plan,
    /// The tables of the kind `Namespace`, if the cache has it.
    pub(crate) namespaces: Option<&'a Layout>,
    /// The kinds of the schema's associations, in their order.
    pub(crate) associated: &'a [Associated],
    /// The tables of these.
    pub(crate) joined: &'a [Layout],
}

impl Select<'_> {
    /// Counts the objects that meet the conditions.
    pub(crate) fn count(&self) -> Statement {
        let mut sql = Statement::default();
        sql.push(&format!("SELECT count(*) FROM {} AS r", self.layout.rows()));
        self.conditions(&mut sql);
        sql
    }

    /// Counts them by the values of a field or label, and by namespace if that is asked for.
    ///
    /// Columns are the value as it is shown, its count, and the namespace.
    pub(crate) fn summary(&self, by: &Target) -> Statement {
        let mut sql = Statement::default();
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
        sql.push(&format!(
            "SELECT {value}, count(*), {namespace} FROM {rows} AS r"
        ));
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
                // Each object once for a value, however many of its associated objects have it.
                sql.push(&format!(
                    " JOIN (SELECT DISTINCT t.id AS id, {shown} AS value"
                ));
                self.pairs(*place, of, &mut sql);
                sql.push(") AS v ON v.id = r.id");
            }
        }
        self.conditions(&mut sql);
        sql.push(&format!(" AND {value} IS NOT NULL GROUP BY 1, 3"));
        sql
    }

    /// Selects ids and the keys of the order, from an offset on or within a range.
    pub(crate) fn page(&self, limit: Option<u64>, from: &From) -> Statement {
        let keys = self.plan.targets(self.schema);
        let mut sql = Statement::default();
        sql.push("SELECT r.id");
        for (number, (target, _)) in keys.iter().enumerate() {
            sql.push(&format!(", {}", self.key(number, target)));
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
            Target::Associated(..) => format!("r.s{number}"),
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
            let words = self.layout.words();
            sql.push(&format!(
                " AND r.id IN (SELECT rowid FROM {words} WHERE {words} MATCH "
            ));
            // Words have letters and digits only, so none ends its quotes.
            let others = others.iter().map(|word| format!("\"{word}\" "));
            sql.bind(Param::Text(format!(
                "{}\"{last}\"*",
                others.collect::<String>()
            )));
            sql.push(")");
        }
    }

    /// Adds that a row is in the namespaces, or not.
    fn namespaces(&self, namespaces: &Namespaces, sql: &mut Statement) {
        // Texts of any number go in one parameter.
        let values = Param::Text(Json::from(namespaces.values.as_slice()).to_string());
        sql.push(" AND (r.f0 IN (SELECT value FROM json_each(");
        sql.bind(values.clone());
        sql.push(")");
        if let (Some(label), Some(of)) = (&namespaces.label, self.namespaces) {
            let (rows, labels) = (of.rows(), of.labels());
            sql.push(&format!(
                " UNION SELECT n.f1 FROM {rows} AS n JOIN {labels} AS l ON l.id = n.id WHERE l.label = "
            ));
            sql.bind(Param::Text(label.clone()));
            sql.push(" AND l.value IN (SELECT value FROM json_each(");
            sql.bind(values);
            sql.push("))");
        }
        let is = if namespaces.is_negated { "NOT " } else { "" };
        sql.push(&format!(")) IS {is}TRUE"));
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
            Target::Associated(place, of) => {
                sql.push("r.id IN (SELECT t.id");
                self.pairs(*place, of, sql);
                sql.push(" AND ");
                check(&test.check, &self.paired(*place, of), sql);
                sql.push(")");
            }
        }
        if test.is_negated {
            // A comparison with a value that is missing is neither true nor false.
            sql.push(") IS NOT TRUE");
        }
    }
}

/// Adds that a user may see a row, by whatever name it is known.
pub(super) fn allowed(access: &Access, row: &str, sql: &mut Statement) {
    let namespaces: Vec<&str> = access.namespaces().collect();
    let names = access.names().flat_map(|(namespace, names)| {
        let key = move |name: &str| match namespace {
            Some(namespace) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster(name),
        };
        names.map(move |name| key(name).as_str().to_owned())
    });
    let names: Vec<String> = names.collect();
    // Texts of any number go in one parameter.
    sql.push(&format!(" AND ({row}.f0 IN (SELECT value FROM json_each("));
    sql.bind(Param::Text(Json::from(namespaces).to_string()));
    sql.push(&format!(")) OR {row}.key IN (SELECT value FROM json_each("));
    sql.bind(Param::Text(Json::from(names).to_string()));
    sql.push(")))");
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
            sql.push(&format!("instr(lower({shown}), "));
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
