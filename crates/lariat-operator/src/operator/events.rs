//! The Events of an operator.

use std::time::Duration;

use lariat_core::Remembered;

use super::operator::Operator;
use crate::events::{EventApi, Recorder};

/// How long a stop waits for unwritten Events.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Operator {
    /// Returns the event recorder, for use outside reconcilers.
    ///
    /// Reconcilers have [`Reconcile::event`](crate::Reconcile::event).
    #[must_use]
    pub fn events(&self) -> Recorder {
        Recorder::clone(&Recorder::of(self.state()))
    }

    /// Accepts Events again after a close.
    pub(super) fn open_events(&self) {
        Recorder::of(self.state()).open();
    }

    /// Stops accepting Events, and waits a while until the queued ones are written.
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

    /// Appends the sizes of what the recorder remembers.
    pub(super) fn remembered_events(&self, all: &mut Vec<Remembered>) {
        all.extend(Recorder::of(self.state()).remembered());
    }
}
