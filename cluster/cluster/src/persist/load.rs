//! Reading the file at the start.

use lariat_core::ObjectKey;
use rusqlite::Row;

use super::error::DataError;
use super::log::Log;
use crate::store::{EventType, LoggedChange, Store};

const ROWS: &str = "SELECT rv, grp_resource, ns, name, event, value FROM log ORDER BY rv";

impl Log {
    /// Fills a new store with everything the file has, the history included.
    pub(super) fn load(&mut self, store: &mut Store) -> Result<(), DataError> {
        let of = |error| DataError::of(&self.path, error);
        let query = "SELECT revision, compacted FROM meta";
        let meta = self.connection.query_row(query, [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        });
        let (revision, compacted) = meta.map_err(of)?;
        // The rows up to a compaction may all be gone, the last included.
        let revision = revision.max(compacted).unsigned_abs();
        store.begin_at(revision, compacted.unsigned_abs());
        let mut statement = self.connection.prepare(ROWS).map_err(of)?;
        let mut rows = statement.query([]).map_err(of)?;
        while let Some(row) = rows.next().map_err(of)? {
            let revision: i64 = row.get(0).map_err(of)?;
            let damaged = |what: String| DataError::Damaged {
                path: self.path.clone(),
                revision: revision.unsigned_abs(),
                what,
            };
            let logged = logged(row).map_err(of)?.map_err(damaged)?;
            store
                .replay(logged)
                .map_err(|what| damaged(what.to_owned()))?;
            // These rows count when it is decided whether the file is to be compacted.
            self.added.rows += 1;
            let value = row.get_ref(5).map_err(of)?.as_blob_or_null();
            self.added.bytes += value.ok().flatten().map_or(0, <[u8]>::len);
        }
        Ok(())
    }
}

/// Reads a row; the inner error is that of its values.
fn logged(row: &Row<'_>) -> rusqlite::Result<Result<LoggedChange, String>> {
    let namespace: Option<String> = row.get(2)?;
    let name: String = row.get(3)?;
    let event: String = row.get(4)?;
    let value: Option<Vec<u8>> = row.get(5)?;
    let event = match event.as_str() {
        "ADDED" => EventType::Added,
        "MODIFIED" => EventType::Modified,
        "DELETED" => EventType::Deleted,
        other => return Ok(Err(format!("{other:?} is no event"))),
    };
    let read = value
        .map(|value| serde_json::from_slice(&value))
        .transpose();
    let object = match read {
        Ok(object) => object,
        Err(error) => return Ok(Err(error.to_string())),
    };
    Ok(Ok(LoggedChange {
        resource: row.get(1)?,
        revision: row.get::<_, i64>(0)?.unsigned_abs(),
        event,
        key: match namespace {
            Some(namespace) => ObjectKey::namespaced(&namespace, &name),
            None => ObjectKey::cluster(&name),
        },
        object,
    }))
}
