//! The workers of a kind in use, and how many there should be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::core::ControllerCore;
use super::opened::Opened;

/// The workers that were spawned for one use of a kind.
pub(super) struct Crew {
    core: Arc<ControllerCore>,
    opened: Arc<Opened>,
    /// The number of workers without those in calls of deregistered handlers.
    wanted: usize,
    /// The number of workers that have not ended.
    present: AtomicUsize,
}

/// The place of a worker. Dropping it gives the place up.
pub(super) struct Place {
    crew: Arc<Crew>,
    is_given_up: bool,
}

impl Crew {
    pub(super) fn new(
        core: &Arc<ControllerCore>,
        opened: &Arc<Opened>,
        wanted: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            core: Arc::clone(core),
            opened: Arc::clone(opened),
            wanted,
            present: AtomicUsize::new(0),
        })
    }

    /// Returns whether the workers belong to a use of the kind.
    pub(super) fn is_of(&self, opened: &Arc<Opened>) -> bool {
        Arc::ptr_eq(&self.opened, opened)
    }

    /// Returns the number of workers that there should be now.
    fn most(&self) -> usize {
        // A worker in such a call may belong to an earlier use of the kind. Then there is one worker more than needed
        // until that call ends.
        self.wanted + self.core.leaving().calls()
    }

    /// Takes a free place for a worker; none if there are enough workers.
    pub(super) fn join(self: &Arc<Self>) -> Option<Place> {
        let most = self.most();
        let joined = self
            .present
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |present| {
                (present < most).then_some(present + 1)
            });
        joined.is_ok().then(|| Place {
            crew: Arc::clone(self),
            is_given_up: false,
        })
    }
}

impl Place {
    pub(super) fn core(&self) -> &Arc<ControllerCore> {
        &self.crew.core
    }

    /// Returns the use of the kind that the worker belongs to.
    pub(super) fn opened(&self) -> &Arc<Opened> {
        &self.crew.opened
    }

    /// Gives the place up if there are more workers than there should be; returns whether it did.
    ///
    /// That is so after a call has ended whose worker was replaced.
    pub(super) fn leave_if_surplus(&mut self) -> bool {
        let present = &self.crew.present;
        // Checked first, because it is called after each run.
        if present.load(Ordering::Relaxed) <= self.crew.wanted {
            return false;
        }
        let most = self.crew.most();
        let left = present.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |present| {
            (present > most).then_some(present - 1)
        });
        self.is_given_up = left.is_ok();
        self.is_given_up
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_given_up {
            self.crew.present.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
