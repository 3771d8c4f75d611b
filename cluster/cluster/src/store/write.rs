//! Writes, the changes they leave for the control plane, and signals to watchers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lariat_apimachinery::kinds::TableId;
use lariat_core::ObjectKey;

use super::history::Event;
use super::object::Draft;

/// One write.
#[derive(Debug)]
pub(crate) struct Write<'a> {
    pub(crate) table: TableId,
    pub(crate) key: &'a ObjectKey,
    /// The revision the writer saw; `None` if it saw no object.
    pub(crate) expected: Option<u64>,
    /// The new state, or `None` to remove the object.
    pub(crate) draft: Option<Draft>,
    /// A table in which the key's namespace must exist and not be going away.
    pub(crate) namespaces: Option<TableId>,
    /// Refuses the write once it is set.
    ///
    /// It is read under the lock, so a sweep after setting it is final.
    pub(crate) terminating: Option<&'a AtomicBool>,
}

impl<'a> Write<'a> {
    /// Makes a write that depends on nothing but the object itself.
    pub(crate) fn new(
        table: TableId,
        key: &'a ObjectKey,
        expected: Option<u64>,
        draft: Option<Draft>,
    ) -> Self {
        Self {
            table,
            key,
            expected,
            draft,
            namespaces: None,
            terminating: None,
        }
    }
}

/// The reason for which a write did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteError {
    /// The object is not what the writer saw.
    Raced,
    NamespaceMissing,
    NamespaceTerminating,
    KindTerminating,
}

/// One commit, as the control plane sees it.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) table: TableId,
    pub(crate) event: Arc<Event>,
}

/// The changes since the control plane looked last.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The changes add everything that is stored, and replace all earlier ones.
    pub(crate) is_complete: bool,
    pub(crate) list: Vec<Change>,
}

/// The signal that watchers of a table wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Signal {
    /// Counts announcements of new events.
    pub(crate) announced: u64,
    /// Counts times at which open watches had to end, and how.
    pub(crate) ended: u64,
    pub(crate) ending: Ending,
}

/// The way in which the server ends a watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The response is complete.
    #[default]
    Clean,
    /// The response is complete, with everything that happened until then.
    Drained,
    /// The connection breaks in the middle of a line.
    Cut,
}
