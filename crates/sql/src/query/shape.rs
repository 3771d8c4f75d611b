//! The shape of a query, to which cursors are bound.

use lariat_seal::Context;

use super::{Part, Query};
use crate::field::FieldType;
use crate::schema::Schema;

/// Returns a hash of the kind, the conditions and the order of a query.
///
/// A cursor fits queries with the same hash.
pub(crate) fn shape(
    schema: &Schema,
    query: &Query,
    types: impl Iterator<Item = FieldType>,
) -> Context {
    // Without what may differ between pages of one answer.
    let asked = Query {
        part: Part::All,
        summaries: Vec::new(),
        summarizes_namespaces: false,
        most_counts: None,
        at_least: None,
        ..query.clone()
    };
    let types = types.map(|of| format!("{of:?} "));
    Context::new("lariat-sql cursor")
        .and(schema.gvk().to_string())
        .and(asked.to_url())
        .and(types.collect::<String>())
}
