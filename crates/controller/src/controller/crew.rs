//! The workers of a kind, and how many there should be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::core::ControllerCore;

/// The workers of an owner, for whichever use of the kind they were spawned.
///
/// A worker in a call of a deregistered handler does not count, so at most `wanted` workers call handlers that are
/// registered. Each worker checks that before each call.
pub(super) struct Crew {
    core: Arc<ControllerCore>,
    /// The number of workers without those in calls of deregistered handlers.
    wanted: usize,
    /// The number of workers that have not ended.
    present: AtomicUsize,
}

/// The place of a worker. Dropping it gives the place up.
pub(super) struct Place {
    crew: Arc<Crew>,
    has_left: bool,
}

impl Crew {
    pub(super) fn new(core: &Arc<ControllerCore>, wanted: usize) -> Arc<Self> {
        Arc::new(Self {
            core: Arc::clone(core),
            wanted,
            present: AtomicUsize::new(0),
        })
    }

    /// Returns the number of workers that there should be now.
    fn most(&self) -> usize {
        self.wanted + self.core.leaving().calls()
    }

    /// Takes a free place for a worker; none if there are enough workers.
    pub(super) fn join(self: &Arc<Self>) -> Option<Place> {
        let most = self.most();
        let more = |present| (present < most).then_some(present + 1);
        let joined = self
            .present
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        joined.is_ok().then(|| Place {
            crew: Arc::clone(self),
            has_left: false,
        })
    }
}

impl Place {
    /// Gives the place up if there are more workers than there should be; returns whether the worker has left.
    ///
    /// That is so after a call has ended whose worker was replaced.
    pub(super) fn leave_if_surplus(&mut self) -> bool {
        let present = &self.crew.present;
        // Checked first, because it is called before each call.
        if self.has_left || present.load(Ordering::Relaxed) <= self.crew.wanted {
            return self.has_left;
        }
        let most = self.crew.most();
        let less = |present| (present > most).then(|| present - 1);
        let left = present.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        self.has_left = left.is_ok();
        self.has_left
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.has_left {
            self.crew.present.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
