//! What the reflectors of a factory share about their API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lariat_core::ResourceVersion;
use tokio::sync::{Mutex, watch};
use tokio::time::{self, Instant};

use super::starts::Starts;
use crate::client::Sent;

/// The time over which reflectors spread their retries once the server is back.
const RETRY_SPREAD: Duration = Duration::from_secs(1);

/// What all reflectors of a factory know about the API server.
///
/// One reflector detects that the server answers again, or that it was restored from a backup, and notifies the others.
/// A kind without changes since the backup cannot detect the restore itself.
///
/// Each history has a number, and each reflector stores the number of the history from which its store was read. So a
/// reflector lists again once for each new history, whichever reflector detects it and however busy this one is at that
/// time. A reflector that detects a history after others does not make them list again. Two restores within one load of
/// a kind count as one.
#[derive(Debug, Clone)]
pub(crate) struct SharedServer {
    /// The number of the last history that was detected.
    found: watch::Sender<u64>,
    /// The number of the history that this reflector has read; not shared.
    read: u64,
    /// The number of requests sent when the last restore was detected.
    detected_at: Arc<AtomicU64>,
    /// Counts the ends of outages.
    back: watch::Sender<u64>,
    /// The newest version of any kind, if versions are numbers.
    newest: Arc<AtomicU64>,
    /// The places for loads, checks and new watches.
    pub(super) starts: Starts,
    /// The last version of the server that was asked for, and when that was.
    pub(super) asked: Arc<Mutex<Option<(Instant, ResourceVersion)>>>,
}

impl Default for SharedServer {
    fn default() -> Self {
        Self::new(Starts::default())
    }
}

impl SharedServer {
    pub(crate) fn new(starts: Starts) -> Self {
        Self {
            found: watch::Sender::new(0),
            read: 0,
            detected_at: Arc::default(),
            back: watch::Sender::new(0),
            newest: Arc::default(),
            starts,
            asked: Arc::default(),
        }
    }

    /// Returns the same for the reflectors of one kind.
    pub(crate) fn of_kind(&self) -> Self {
        Self {
            starts: self.starts.of_kind(),
            ..self.clone()
        }
    }

    /// Records a version of any kind.
    pub(super) fn reached(&self, version: &ResourceVersion) {
        if let Ok(number) = version.number() {
            self.newest.fetch_max(number, Ordering::Relaxed);
        }
    }

    /// Records the version of a load, which is the present one of the server.
    ///
    /// Later versions that are known are of another history, as after a restore while nothing was read; or a kind has
    /// reached them since the load began, and reports the next one soon.
    pub(super) fn loaded(&self, version: &ResourceVersion) {
        if let Ok(number) = version.number() {
            self.newest.store(number, Ordering::Relaxed);
        }
    }

    /// Returns whether any kind has reached a later version.
    pub(super) fn is_beyond(&self, version: &ResourceVersion) -> bool {
        let newest = self.newest.load(Ordering::Relaxed);
        version.number().is_ok_and(|number| number < newest)
    }

    /// Reports that the server has another history than this reflector has read.
    pub(super) fn restored(&self) {
        self.found.send_if_modified(|found| {
            // Versions of the previous history may be later than those of this one.
            self.newest.store(0, Ordering::Relaxed);
            // All reflectors detect the same restore, one after the other: only the first one gives it a number.
            let is_news = *found == self.read;
            if is_news {
                // Before a list of this history can begin, which the answers must not undo.
                self.detected_at
                    .store(Sent::next(None).number, Ordering::Relaxed);
                tracing::warn!(
                    "the API server has another history than before, as after a restore from a backup; \
                     all kinds are listed again"
                );
            }
            *found += u64::from(is_news);
            is_news
        });
    }

    /// Returns whether request number `sent` was sent before a restore was detected.
    ///
    /// The server may have answered it with a state of the former history.
    pub(crate) fn is_former(&self, sent: u64) -> bool {
        sent < self.detected_at.load(Ordering::Relaxed)
    }

    /// Returns the number of the server's present history.
    pub(crate) fn found(&self) -> u64 {
        *self.found.borrow()
    }

    /// Returns the number of the history that this reflector has read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// Records the end of a load in which contents were compared.
    ///
    /// `found` is the number of the history that was known when the load began. `went_back` means that the server
    /// returned an earlier version than before, so that the load is of another history.
    pub(super) fn compared(&mut self, found: u64, went_back: bool) {
        self.read = found.max(self.read + u64::from(went_back));
    }

    /// Records that the store is empty, so that it is read from the present history.
    pub(super) fn see(&mut self) {
        self.read = self.found();
    }

    /// Returns whether this reflector must read another history.
    pub(super) fn is_restored(&self) -> bool {
        self.found() > self.read
    }

    /// Waits until this reflector must read another history.
    pub(super) async fn until_restored(&self) {
        let mut found = self.found.subscribe();
        // Cannot fail: the sender is in the same struct.
        let _ = found.wait_for(|found| *found > self.read).await;
    }

    /// Reports that the server answers again.
    pub(super) fn answers(&self) {
        self.back.send_modify(|count| *count += 1);
    }

    /// Waits for `delay`, or until shortly after another reflector has an answer.
    pub(super) async fn wait_until_back(&self, delay: Duration) {
        let mut back = self.back.subscribe();
        if let Ok(Ok(())) = time::timeout(delay, back.changed()).await {
            // Spread at random: a server that has just started must not get all requests at once.
            time::sleep(RETRY_SPREAD.mul_f64(fastrand::f64())).await;
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
        // The other reflector detects the same restore, later.
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
        // Its versions show that it is from the other history.
        one.compared(begun, true);
        assert!(!one.is_restored());
    }
}
