//! The client of a watch, whose connection may break.

use tokio::sync::watch::Receiver;

use super::planned_break::Break;
use crate::rules::Partitions;
use crate::store::Ending;
use crate::verbs::call::Call;

/// The client of a watch, and the clients that are cut off.
#[derive(Debug)]
pub(super) struct Client {
    user_agent: String,
    isolated: Receiver<Vec<Partitions>>,
    /// It was cut off once, after which nothing more can happen to it.
    is_cut_off: bool,
}

impl Client {
    pub(super) fn of(call: &Call) -> Self {
        let mut isolated = call.server.faults.isolated();
        // Earlier isolations did not stop this watch, so only later ones count.
        isolated.mark_unchanged();
        Self {
            user_agent: call.user_agent.clone(),
            isolated,
            is_cut_off: false,
        }
    }

    /// Returns the break of the watch if its client was cut off since the last call.
    pub(super) fn cut_off(&mut self) -> Option<Break> {
        // An error means that the faults of the server are gone, and with them whatever could cut clients off.
        if self.is_cut_off || !self.isolated.has_changed().unwrap_or(false) {
            return None;
        }
        let isolated = self.isolated.borrow_and_update();
        let by = isolated.iter().find(|each| each.is(&self.user_agent))?;
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
        let mut isolated = self.isolated.clone();
        if isolated.changed().await.is_err() {
            // No change can come any more, and the other branches of the watcher's select have to end it.
            std::future::pending::<()>().await;
        }
    }
}
