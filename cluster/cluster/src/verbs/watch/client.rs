//! The client of a watch, whose connection may break.

use tokio::sync::watch::Receiver;

use super::planned_break::Break;
use crate::rules::Partition;
use crate::store::Ending;
use crate::verbs::call::Call;

/// The client of a watch, and the clients that are cut off.
#[derive(Debug)]
pub(super) struct Client {
    user_agent: String,
    partitions: Receiver<Vec<Partition>>,
    /// It was cut off once, after which nothing more can happen to it.
    is_cut_off: bool,
}

impl Client {
    pub(super) fn of(call: &Call) -> Self {
        let mut partitions = call.server.faults.partitions();
        // Earlier isolations did not stop this watch, so only later ones count.
        partitions.mark_unchanged();
        Self {
            user_agent: call.user_agent.clone(),
            partitions,
            is_cut_off: false,
        }
    }

    /// Returns the break of the watch if its client was cut off since the last call.
    pub(super) fn cut_off(&mut self) -> Option<Break> {
        // An error means that the faults of the server are gone, and with them whatever could cut clients off.
        if self.is_cut_off || !self.partitions.has_changed().unwrap_or(false) {
            return None;
        }
        let partitions = self.partitions.borrow_and_update();
        let by = partitions.iter().find(|each| each.is(&self.user_agent))?;
        self.is_cut_off = true;
        Some(if by.silent {
            Break::Hang
        } else {
            Break::End(Ending::Cut)
        })
    }

    /// Waits until others are cut off than before.
    pub(super) async fn changed(&self) {
        // A receiver of its own leaves the change to be seen by `cut_off`.
        let mut partitions = self.partitions.clone();
        if partitions.changed().await.is_err() {
            // No change can come any more, and the other branches of the watcher's select have to end it.
            std::future::pending::<()>().await;
        }
    }
}
