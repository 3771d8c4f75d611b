//! The Events of an operator.

use std::time::Duration;

use lariat_core::Remembered;

use super::operator::Operator;
use crate::events::{EventApi, Recorder};

/// How long a stop waits for Events that are not written yet.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Operator {
    /// Returns the recorder of Events, for use outside reconcilers; inside there is [`Reconcile::event`](crate::Reconcile::event).
    #[must_use]
    pub fn events(&self) -> Recorder {
        Recorder::clone(&Recorder::of(self.state()))
    }

    /// Takes Events again after a close.
    pub(super) fn open_events(&self) {
        Recorder::of(self.state()).open();
    }

    /// Takes no more Events, and waits for a while until those that wait are written.
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

    /// Adds how much is remembered.
    pub(super) fn remembered_events(&self, all: &mut Vec<Remembered>) {
        all.extend(Recorder::of(self.state()).remembered());
    }
}
