//! The sizes of stored objects.

use std::collections::HashMap;

use super::{Connection, Statement, StorageError};
use crate::param::List;

/// Returns the sizes of the objects in a table in bytes, by their numbers.
///
/// The objects themselves are not read.
pub(crate) fn sizes(
    connection: &mut dyn Connection,
    table: &str,
    ids: Vec<i64>,
) -> Result<HashMap<i64, u64>, StorageError> {
    let mut sizes = HashMap::with_capacity(ids.len());
    if ids.is_empty() {
        return Ok(sizes);
    }
    let select = format!("SELECT id, CAST(length(json) AS bigint) FROM {table} WHERE id");
    let mut sql = Statement::new(connection.dialect(), &select);
    sql.among(List::Integers(ids));
    connection.query(&sql, &mut |mut columns| {
        let (id, size) = (columns.integer()?, columns.integer()?);
        sizes.insert(id, size.unsigned_abs());
        Ok(())
    })?;
    Ok(sizes)
}
