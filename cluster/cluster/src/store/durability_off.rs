//! A store that lives in memory: whatever is committed may be seen at once.

use std::sync::Arc;

use lariat_apimachinery::kinds::TableId;
use tokio::sync::Notify;

use super::state::StoreState;
use super::{Event, Snapshot, Store};

/// The records that wait for the disk: none.
#[derive(Debug, Default)]
pub(super) struct PendingRecords {}

/// The progress of writing to disk: nothing is written.
#[derive(Debug, Default)]
pub(super) struct Durability {}

impl PendingRecords {
    fn visible(&self, revision: u64) -> u64 {
        revision
    }
}

impl Durability {
    fn wake(&self, dispatcher: &Notify) {
        dispatcher.notify_one();
    }
}

/// The error of a commit that is not on disk, which cannot happen.
#[derive(Debug)]
pub(crate) enum NotDurable {}

impl std::fmt::Display for NotDurable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {}
    }
}

impl std::error::Error for NotDurable {}

impl Store {
    #[expect(clippy::unused_async, reason = "with a disk it waits")]
    pub(crate) async fn settled(&self) -> Result<(), NotDurable> {
        Ok(())
    }

    pub(super) fn wake(&self) {
        self.durability.wake(&self.committed);
    }
}

impl StoreState {
    pub(super) fn visible(&self) -> u64 {
        self.pending.visible(self.revision)
    }

    pub(super) fn note_change(&mut self, id: TableId, _: &Arc<Event>) {
        self.sequence += 1;
        self.announce(id);
    }

    pub(super) fn note_revision(&mut self) {
        self.sequence += 1;
    }

    pub(super) fn note_compaction(&mut self) {
        self.sequence += 1;
    }

    pub(super) fn note_reset(&mut self, _: &Snapshot) {
        self.sequence += 1;
    }
}
