//! What the reflectors of a factory find out together: that the API server was restored from a backup.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// How long after it has read everything again a reflector does not do so because of others: they all notice the same
/// restore, one after the other.
const SAME: Duration = Duration::from_secs(120);

/// Says among the reflectors of one API server that one of them found another history.
///
/// A kind in which nothing had happened since the backup cannot see that itself.
#[derive(Debug, Clone)]
pub(crate) struct Restores {
    count: watch::Sender<u64>,
    seen: watch::Receiver<u64>,
    /// When everything was read again last, contents compared.
    compared: Option<Instant>,
}

impl Default for Restores {
    fn default() -> Self {
        let (count, seen) = watch::channel(0);
        Self {
            count,
            seen,
            compared: None,
        }
    }
}

impl Restores {
    /// Says that the API server has another history.
    pub(super) fn find(&self) {
        self.count.send_modify(|count| *count += 1);
    }

    /// Notes that everything was read again, contents compared.
    pub(super) fn compared(&mut self) {
        self.compared = Some(Instant::now());
    }

    /// Returns whether what others find concerns this reflector by now.
    pub(super) fn concern(&mut self) -> bool {
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
    ///
    /// Dropping the future loses nothing.
    pub(super) async fn found(&mut self) {
        // There is a sender in the same struct.
        let _ = self.seen.changed().await;
    }
}
