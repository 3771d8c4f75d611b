//! What cursors are bound to.

use lariat_seal::Context;

use super::{Part, Query};
use crate::field::FieldType;
use crate::schema::Schema;

/// Returns a hash of the kind, the conditions and the order of a query.
///
/// A cursor fits queries with the same one.
pub(crate) fn shape(
    schema: &Schema,
    query: &Query,
    types: impl Iterator<Item = FieldType>,
) -> Context {
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
