//! Rows that the database refuses, while the other changes of their batch are written.

use std::collections::HashSet;

use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;

use crate::op::Op;
use crate::sql::StorageError;
use crate::store::{Reached, Tables, Writer};

/// The length of a key in a log, in characters.
const SHOWN: usize = 200;

/// The objects that have no row, because the database refuses a value of theirs.
#[derive(Debug, Default)]
pub(super) struct LeftOut(Mutex<HashSet<ObjectKey>>);

impl LeftOut {
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Writes changes, and leaves those out that the database refuses.
    ///
    /// A batch that is refused for a value is written in halves, down to the refused row. Its earlier state is deleted,
    /// which nobody may take for the present one. A later change of the object is tried again.
    pub(super) fn apply(
        &self,
        writer: &mut Writer,
        tables: &Tables,
        ops: &[Op],
        reached: Option<(Reached, Option<&str>)>,
    ) -> Result<(), StorageError> {
        let mut refused = Vec::new();
        write(writer, tables, ops, reached, &mut refused)?;
        // The next process would continue without these objects: it must list the kind.
        if let Some((reached, Some(_))) = reached
            && !refused.is_empty()
        {
            writer.apply(tables, &[], Some((reached, None)))?;
        }
        let mut keys = self.0.lock();
        if !keys.is_empty() {
            for op in ops {
                keys.remove(op.key());
            }
        }
        for (key, error) in refused {
            warn(tables.schema.gvk(), &key, &error);
            keys.insert(key);
        }
        Ok(())
    }
}

fn write(
    writer: &mut Writer,
    tables: &Tables,
    ops: &[Op],
    reached: Option<(Reached, Option<&str>)>,
    refused: &mut Vec<(ObjectKey, StorageError)>,
) -> Result<(), StorageError> {
    let error = match writer.apply(tables, ops, reached) {
        Err(error) if error.is_of_value() && !ops.is_empty() => error,
        written => return written,
    };
    if let [op] = ops {
        let key = op.key().clone();
        writer.apply(tables, &[Op::Delete(key.clone())], reached)?;
        refused.push((key, error));
        return Ok(());
    }
    let (first, second) = ops.split_at(ops.len() / 2);
    // Readers wait until the second half is written, which has the progress.
    write(writer, tables, first, None, refused)?;
    write(writer, tables, second, reached, refused)
}

fn warn(kind: &Gvk, key: &ObjectKey, error: &StorageError) {
    let shown: String = key.as_str().chars().take(SHOWN).collect();
    tracing::warn!(%kind, key = shown, %error, "the SQL cache leaves an object out: the database refuses a value of it");
}
