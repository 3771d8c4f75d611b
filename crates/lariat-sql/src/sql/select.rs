//! The statements of a query.

use super::{Layout, Param, Statement};
use serde_json::Value as Json;

use crate::query::{Check, Comparison, Namespaces, Order, Plan, Target, Test};
use crate::schema::{NAME, NAMESPACE, Schema};

/// Makes the statements of a query on a kind.
pub(crate) struct Select<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) schema: &'a Schema,
    pub(crate) plan: &'a Plan,
    /// The tables of the kind `Namespace`, if the cache has it.
    pub(crate) namespaces: Option<&'a Layout>,
}

/// A key of the order: what objects are sorted by, with what decides at last.
pub(crate) type Keys = Vec<(Target, bool)>;

impl Select<'_> {
    /// Returns what objects are sorted by, and whether backwards: the orders of the query, namespace and name.
    pub(crate) fn keys(&self) -> Keys {
        let place = |name| Target::Field(self.schema.place(name).unwrap_or_default());
        let orders = self.plan.orders.iter();
        let orders = orders.map(
            |Order {
                 target,
                 is_descending,
             }| (target.clone(), *is_descending),
        );
        let last = [(place(NAMESPACE), false), (place(NAME), false)];
        orders.chain(last).collect()
    }

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
        }
        self.conditions(&mut sql);
        sql.push(&format!(
            " AND {value} IS NOT NULL GROUP BY 1, 3 ORDER BY 2 DESC, 1, 3"
        ));
        sql
    }

    /// Selects ids and the keys of the order, from an offset or behind the keys of a row on.
    pub(crate) fn page(&self, limit: Option<u64>, from: &From) -> Statement {
        let keys = self.keys();
        let mut sql = Statement::default();
        sql.push("SELECT r.id");
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
        if let From::Behind(params) = from {
            sql.push(" AND (");
            self.behind(&keys, params, &mut sql);
            sql.push(")");
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

    /// Adds that a row comes behind the one with these keys.
    ///
    /// One of the keys comes behind its counterpart, and those before it are equal.
    fn behind(&self, keys: &Keys, params: &[Param], sql: &mut Statement) {
        sql.join(0..keys.len(), " OR ", |sql, last| {
            sql.push("(");
            for (number, (target, _)) in keys[..last].iter().enumerate() {
                sql.push(&format!("{} IS ", self.key(number, target)));
                sql.bind(params[number].clone());
                sql.push(" AND ");
            }
            let (target, is_descending) = &keys[last];
            let key = self.key(last, target);
            match (&params[last], is_descending) {
                (Param::Null, false) => sql.push("FALSE"),
                (Param::Null, true) => sql.push(&format!("{key} IS NOT NULL")),
                (param, false) => {
                    sql.push(&format!("({key} IS NULL OR {key} > "));
                    sql.bind(param.clone());
                    sql.push(")");
                }
                (param, true) => {
                    sql.push(&format!("{key} < "));
                    sql.bind(param.clone());
                }
            }
            sql.push(")");
        });
    }

    /// Adds the conditions of the query.
    fn conditions(&self, sql: &mut Statement) {
        sql.push(" WHERE TRUE");
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
                check(&test.check, ("value", "value"), sql);
                sql.push(")");
            }
            Target::Field(place) if self.layout.is_many(*place) => {
                let column = self.layout.many_column(*place);
                sql.push(&format!(
                    "r.id IN (SELECT id FROM {} WHERE ",
                    self.layout.many(*place)
                ));
                check(&test.check, (&column.compared, &column.shown), sql);
                sql.push(")");
            }
            Target::Field(place) => {
                let column = self.layout.column(*place);
                let (compared, shown) = (
                    format!("r.{}", column.compared),
                    format!("r.{}", column.shown),
                );
                check(&test.check, (&compared, &shown), sql);
            }
        }
        if test.is_negated {
            // A comparison with a value that is missing is neither true nor false.
            sql.push(") IS NOT TRUE");
        }
    }
}

/// Where a page begins.
#[derive(Debug)]
pub(crate) enum From {
    Offset(u64),
    /// Behind the row with these keys.
    Behind(Vec<Param>),
}

/// Adds a check of a column, which is compared in one form and shown in another.
fn check(check: &Check, (compared, shown): (&str, &str), sql: &mut Statement) {
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
