//! What the reflectors of a factory find out together about their API server.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{self, Instant};

/// How long after it has read everything again a reflector does not do so because of others: they all notice the same
/// restore, one after the other.
const SAME: Duration = Duration::from_secs(120);

/// Within which time everybody asks a server that is back.
const RUSH: Duration = Duration::from_secs(1);

/// What one reflector finds out, and others wait for: that the API server is back, or has another history.
///
/// A kind in which nothing had happened since a backup cannot see itself that the server was restored from it.
#[derive(Debug, Clone)]
pub(crate) struct SharedServer {
    /// Counts the histories that were found.
    restored: watch::Sender<u64>,
    seen: watch::Receiver<u64>,
    /// Counts how often the server answered again after it had not.
    back: watch::Sender<u64>,
    /// When everything was read again last, contents compared.
    compared: Option<Instant>,
}

impl Default for SharedServer {
    fn default() -> Self {
        let (restored, seen) = watch::channel(0);
        Self {
            restored,
            seen,
            back: watch::Sender::new(0),
            compared: None,
        }
    }
}

impl SharedServer {
    /// Says that the server has another history.
    pub(super) fn restored(&self) {
        self.restored.send_modify(|count| *count += 1);
    }

    /// Notes that everything was read again, contents compared.
    pub(super) fn compared(&mut self) {
        self.compared = Some(Instant::now());
    }

    /// Returns whether another history that is found concerns this reflector by now.
    pub(super) fn concerns(&mut self) -> bool {
        let is_done = self.compared.is_some_and(|at| at.elapsed() < SAME);
        if is_done {
            self.see();
        }
        !is_done
    }

    /// Forgets what was found until now.
    pub(super) fn see(&mut self) {
        self.seen.mark_unchanged();
    }

    /// Waits until another reflector finds another history.
    pub(super) async fn is_restored(&mut self) {
        // There is a sender in the same struct.
        let _ = self.seen.changed().await;
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
