//! Joins: associated kinds in statements.

use super::layout::Column;
use super::select::{Select, allowed};
use super::{BEGINNING, Layout, Statement};
use crate::associated::Link;
use crate::param::Param;
use crate::query::Target;
use crate::schema::{NAME, UID};

/// The columns that are compared to find associated rows.
struct Ends {
    /// A column of this kind's tables, with the aliases `t` and `m`.
    own: String,
    /// A column of the other kind's tables, with the aliases `o` and `n`.
    other: String,
    /// Whether an index contains only the beginnings of the other column.
    is_long: bool,
    /// Whether it is the name of the other kind.
    is_name: bool,
}

impl Select<'_> {
    /// Returns the column of a field or label in [`pairs`](Self::pairs).
    pub(super) fn paired(&self, association: usize, target: &Target) -> Column {
        let other = &self.joined[association];
        match target {
            Target::Field(place) if !other.is_many(*place) => other.column(*place).of("o"),
            Target::Field(place) => other.many_column(*place).of("v"),
            Target::Label(_) | Target::Associated(..) => self.label_value().of("v"),
        }
    }

    /// Adds tables and conditions that pair rows with associated values.
    ///
    /// The id of each row, as `t.id`, is paired with the values of associated objects that may be seen. The text ends
    /// within the conditions, so others can follow.
    pub(super) fn pairs(&self, association: usize, target: &Target, sql: &mut Statement) {
        let (own, other) = (self.layout, &self.joined[association]);
        let link = &self.associated[association].link;
        sql.push(&format!(" FROM {} AS t", own.rows()));
        self.own_end(link, sql);
        let ends = self.ends(association, link);
        let are_equal = ends.are_equal();
        let Ends { own, is_name, .. } = ends;
        match link {
            Link::Field { other: place, .. } if other.is_many(*place) => {
                let (many, rows) = (other.many(*place), other.rows());
                sql.push(&format!(
                    " JOIN {many} AS n ON {are_equal} JOIN {rows} AS o ON o.id = n.id"
                ));
            }
            _ => sql.push(&format!(" JOIN {} AS o ON {are_equal}", other.rows())),
        }
        if is_name {
            // The same condition by the key, which has an index.
            // A cluster-scoped object, or one in the namespace of the row.
            sql.push(&format!(" AND o.key IN ({own}, t.f0 || '/' || {own})"));
        }
        // A namespaced object is associated only within its namespace.
        sql.push(" AND (o.f0 IS NULL OR o.f0 = t.f0)");
        paired_table(other, target, sql);
        sql.push(" WHERE TRUE");
        let accesses = self.plan.associated[association].iter();
        for access in accesses.filter(|access| !access.is_everything()) {
            allowed(access, "o", sql);
        }
    }

    /// Adds the rows, as `r`, with columns for sort keys of associated objects.
    ///
    /// `r.s3` is the fourth key of the order.
    pub(super) fn rows_to_sort(&self, keys: &[(Target, bool)], sql: &mut Statement) {
        let mut keys = keys
            .iter()
            .enumerate()
            .filter_map(|(number, (target, _))| match target {
                Target::Associated(association, of) => Some((number, *association, of)),
                _ => None,
            });
        let rows = self.layout.rows();
        // The usual case: the table itself, whose indexes are in the order of the query.
        let Some(first) = keys.next() else {
            return sql.push(&format!(" FROM {rows} AS r"));
        };
        sql.push(" FROM (SELECT q.*");
        for (number, association, of) in std::iter::once(first).chain(keys) {
            // A subquery for at most one: a join could repeat the row.
            // The smallest value, whichever the direction is.
            let column = self.paired(association, of).compared;
            sql.push(&format!(", (SELECT {column}"));
            self.pairs(association, of, sql);
            sql.push(&format!(
                " AND t.id = q.id ORDER BY 1 ASC NULLS LAST LIMIT 1) AS s{number}"
            ));
        }
        sql.push(&format!(" FROM {rows} AS q) AS r"));
    }

    /// Adds the table of this kind with the association's column.
    ///
    /// Nothing is added if that is the row table.
    fn own_end(&self, link: &Link, sql: &mut Statement) {
        let own = self.layout;
        match link {
            Link::Field { own: place, .. } if own.is_many(*place) => {
                sql.push(&format!(" JOIN {} AS m ON m.id = t.id", own.many(*place)));
            }
            Link::Field { .. } => {}
            Link::Label(key) => {
                let labels = own.labels();
                sql.push(&format!(
                    " JOIN {labels} AS m ON m.id = t.id AND m.label = "
                ));
                sql.bind(Param::Text(key.to_string()));
            }
            Link::Owner { is_controller } => {
                sql.push(&format!(" JOIN {} AS m ON m.id = t.id", own.owners()));
                if *is_controller {
                    sql.push(" AND m.controls <> 0");
                }
            }
        }
    }

    /// Returns the columns that are equal in associated rows.
    fn ends(&self, association: usize, link: &Link) -> Ends {
        let (own, other) = (self.layout, &self.joined[association]);
        let schema = &self.associated[association].schema;
        let place = |name| schema.place(name).unwrap_or_default();
        let column = |layout: &Layout, place: usize, one: &str, many: &str| {
            if layout.is_many(place) {
                layout.many_column(place).of(many)
            } else {
                layout.column(place).of(one)
            }
        };
        let (own, column, is_name) = match link {
            Link::Label(_) => (
                "m.value".to_owned(),
                column(other, place(NAME), "o", "n"),
                true,
            ),
            Link::Owner { .. } => (
                "m.uid".to_owned(),
                column(other, place(UID), "o", "n"),
                false,
            ),
            Link::Field {
                own: from,
                other: to,
            } => {
                let is_name = *to == place(NAME);
                // Keys of natural texts compare only with each other; with any other type the texts are compared.
                let is_same = own.type_of(*from) == other.type_of(*to);
                let (from, to) = (column(own, *from, "t", "m"), column(other, *to, "o", "n"));
                if is_same && !is_name {
                    return Ends {
                        own: from.compared,
                        other: to.compared,
                        is_long: to.is_long,
                        is_name,
                    };
                }
                (from.shown, to, is_name)
            }
        };
        Ends {
            own,
            // The index of a natural text contains its key, not the text.
            is_long: column.is_long && column.compared == column.shown,
            other: column.shown,
            is_name,
        }
    }
}

impl Ends {
    /// Returns the condition that both are equal.
    fn are_equal(&self) -> String {
        let Self { own, other, .. } = self;
        if self.is_long {
            format!("substr({other}, {BEGINNING}) = substr({own}, {BEGINNING}) AND {other} = {own}")
        } else {
            format!("{other} = {own}")
        }
    }
}

/// Adds the table of the other kind with the values, unless it is the row table.
fn paired_table(other: &Layout, target: &Target, sql: &mut Statement) {
    match target {
        Target::Field(place) if other.is_many(*place) => {
            sql.push(&format!(" JOIN {} AS v ON v.id = o.id", other.many(*place)));
        }
        Target::Label(key) => {
            let labels = other.labels();
            sql.push(&format!(
                " JOIN {labels} AS v ON v.id = o.id AND v.label = "
            ));
            sql.bind(Param::Text(key.to_string()));
        }
        Target::Field(_) | Target::Associated(..) => {}
    }
}
