//! The Events of an operator.

use std::time::Duration;

use lariat_core::TableSize;

use super::operator::Operator;
use crate::events::{EventApi, Recorder};

/// The time that a stop waits for unwritten Events.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Operator {
    /// Returns the event recorder, for use outside reconcilers.
    ///
    /// In a reconciler use [`Reconcile::event`](crate::Reconcile::event).
    #[must_use]
    pub fn events(&self) -> Recorder {
        Recorder::clone(&Recorder::of(self.state()))
    }

    /// Accepts Events again after a close.
    pub(super) fn open_events(&self) {
        Recorder::of(self.state()).open();
    }

    /// Stops accepting Events, and waits a while for the queued ones to be written.
    pub(super) async fn close_events(&self) {
        Recorder::of(self.state()).close(TIMEOUT).await;
    }

    /// Returns the API group in which Events are written.
    pub(super) fn events_group(&self) -> &'static str {
        match Recorder::of(self.state()).api() {
            EventApi::Core => "",
            EventApi::Events => "events.k8s.io",
        }
    }

    /// Appends the sizes of the recorder's structures.
    pub(super) fn event_table_sizes(&self, all: &mut Vec<TableSize>) {
        all.extend(Recorder::of(self.state()).table_sizes());
    }
}
