//! Changes of rows, as a writer applies them.

use lariat_core::ObjectKey;

use crate::row::Row;

/// A change of one row.
pub(crate) enum Op {
    Put {
        row: Row,
        json: Vec<u8>,
        /// Whether an earlier process may have written the row in this state.
        is_initial: bool,
    },
    Delete(ObjectKey),
}

impl Op {
    pub(crate) fn key(&self) -> &ObjectKey {
        match self {
            Self::Put { row, .. } => &row.key,
            Self::Delete(key) => key,
        }
    }
}
