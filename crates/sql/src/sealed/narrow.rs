//! Which rows of an encrypted kind a query has to decrypt.

use std::iter;

use lariat_core::ObjectKey;

use super::Sealed;
use crate::access::Access;
use crate::param::List;
use crate::query::{Check, Plan, Target, Test};
use crate::schema::{NAMESPACE, Schema};
use crate::sql::Statement;

/// Adds the conditions that leave out rows which the query cannot select.
///
/// The database compares hashes of namespaces and keys. Rows that it finds need not meet the query. Rows of namespaces
/// that a user may not see are not decrypted, so their number and size do not show in the time of a query.
pub(super) fn narrow(sql: &mut Statement, of: &Sealed, schema: &Schema, plan: &Plan) {
    let mut words = iter::once(" WHERE ").chain(iter::repeat(" AND "));
    let mut next = |sql: &mut Statement| sql.push(words.next().unwrap_or_default());
    for access in plan.accesses.iter().filter(|it| !it.is_everything()) {
        next(sql);
        allowed(sql, of, access);
    }
    for namespaces in selected(schema, plan) {
        next(sql);
        among(sql, of, namespaces);
    }
}

/// Adds the condition that an access allows a row.
fn allowed(sql: &mut Statement, of: &Sealed, access: &Access) {
    let names = access.names().flat_map(|(namespace, names)| {
        names.map(move |name| match namespace {
            Some(namespace) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster(name),
        })
    });
    let keys = names.map(|key| of.key(&key)).collect();
    sql.push("(");
    among(sql, of, access.namespaces());
    sql.push(" OR hash");
    sql.among(List::Bytes(keys));
    sql.push(")");
}

/// Adds the condition that a row is in one of these namespaces.
fn among<'a>(sql: &mut Statement, of: &Sealed, namespaces: impl IntoIterator<Item = &'a str>) {
    let hashes = namespaces.into_iter().map(|name| of.namespace(name));
    sql.push("namespace");
    sql.among(List::Bytes(hashes.collect()));
}

/// Returns the lists of namespaces from which a query selects objects.
///
/// The namespace of an object must be in each list.
fn selected<'a>(schema: &Schema, plan: &'a Plan) -> impl Iterator<Item = Vec<&'a str>> {
    let named = plan.namespaces.iter().filter(|it| !it.is_negated);
    let named = named.map(|it| it.values.iter().map(String::as_str).collect());
    let namespace = schema.place(NAMESPACE).map(Target::Field);
    let filtered = plan.filters.iter().filter_map(move |any| {
        let values = any.iter().map(|test| equal(test, namespace.as_ref()));
        let values: Option<Vec<Vec<&str>>> = values.collect();
        values.map(|values| values.concat())
    });
    named.chain(filtered)
}

/// Returns the texts of which a field must be one to pass; `None` for other tests.
fn equal<'a>(test: &'a Test, field: Option<&Target>) -> Option<Vec<&'a str>> {
    match &test.check {
        Check::OneOf(values) if !test.is_negated && Some(&test.target) == field => {
            values.iter().map(|value| value.as_text()).collect()
        }
        _ => None,
    }
}
