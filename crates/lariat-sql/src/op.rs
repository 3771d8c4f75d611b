//! Changes of rows.

use lariat_core::ObjectKey;

use crate::row::Row;

/// A change of one row.
pub(crate) enum Op {
    Put {
        row: Row,
        json: Vec<u8>,
        /// Whether the row may be there in this state, from an earlier process.
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
