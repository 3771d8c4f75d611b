//! What the reflectors of a factory find out together about their API server.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time;

/// Within which time everybody asks a server that is back.
const RUSH: Duration = Duration::from_secs(1);

/// What all reflectors of a factory know about the API server.
///
/// One reflector finds out that the server answers again, or that it was restored from a backup, and the others wait
/// for it.
///
/// A kind in which nothing had happened since a backup cannot see itself that the server was restored from it.
///
/// Each history has a number, and each reflector has the number of the history that its store was read from. So a
/// reflector reads everything again once for each new history, whichever reflector finds it and however busy this one
/// is at that time, and a reflector that finds a history after others does not have them read again. Two restores
/// within one reload of a kind count as one.
#[derive(Debug, Clone)]
pub(crate) struct SharedServer {
    /// The number of the last history that was found.
    found: watch::Sender<u64>,
    /// The number of the history of what this reflector has read.
    read: u64,
    /// Counts how often the server answered again after it had not.
    back: watch::Sender<u64>,
}

impl Default for SharedServer {
    fn default() -> Self {
        Self {
            found: watch::Sender::new(0),
            read: 0,
            back: watch::Sender::new(0),
        }
    }
}

impl SharedServer {
    /// Reports that the server has another history than this reflector has read.
    pub(super) fn restored(&self) {
        self.found.send_if_modified(|found| {
            // All notice the same restore, one after the other.
            let is_news = *found == self.read;
            *found += u64::from(is_news);
            is_news
        });
    }

    /// Returns the number of the history that the server has now.
    pub(super) fn found(&self) -> u64 {
        *self.found.borrow()
    }

    /// Records that a reload has ended, in which contents were compared.
    ///
    /// `found` is the number of the history that was known when the reload began. `went_back` says that the server
    /// returned an earlier version than before, so that what was read is of another history.
    ///
    /// `found` was the number of the last history when this began; `went_back` if what was read is from another history
    /// than before.
    pub(super) fn compared(&mut self, found: u64, went_back: bool) {
        self.read = found.max(self.read + u64::from(went_back));
    }

    /// Records that the store is empty: the present history is the one it is read from.
    pub(super) fn see(&mut self) {
        self.read = self.found();
    }

    /// Returns whether this reflector has to read the store again from another history.
    pub(super) fn is_restored(&self) -> bool {
        self.found() > self.read
    }

    /// Waits until this reflector has to read the store again from another history.
    pub(super) async fn until_restored(&self) {
        let mut found = self.found.subscribe();
        // There is a sender in the same struct.
        let _ = found.wait_for(|found| *found > self.read).await;
    }

    /// Says that the server answers again.
    pub(super) fn answers(&self) {
        self.back.send_modify(|count| *count += 1);
    }

    /// Waits for a time, or until another reflector has an answer, and a moment that is different for each.
    pub(super) async fn is_back_within(&self, delay: Duration) {
        let mut back = self.back.subscribe();
        if let Ok(Ok(())) = time::timeout(delay, back.changed()).await {
            time::sleep(RUSH.mul_f64(fastrand::f64())).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reflector_reads_once_for_each_history() {
        let mut one = SharedServer::default();
        let mut other = one.clone();
        assert!(!one.is_restored() && !other.is_restored());
        one.restored();
        assert!(one.is_restored() && other.is_restored());
        // The other notices the same, later.
        one.compared(one.found(), false);
        other.restored();
        assert!(!one.is_restored() && other.is_restored());
        other.compared(other.found(), false);
        assert!(!one.is_restored() && !other.is_restored());
        other.restored();
        assert!(one.is_restored() && other.is_restored(), "a second restore");
    }

    #[test]
    fn what_was_read_before_another_history_was_found_is_read_again() {
        let mut one = SharedServer::default();
        let other = one.clone();
        let begun = one.found();
        other.restored();
        one.compared(begun, false);
        assert!(one.is_restored());
        // Its versions show that this is from the other history.
        one.compared(begun, true);
        assert!(!one.is_restored());
    }
}
