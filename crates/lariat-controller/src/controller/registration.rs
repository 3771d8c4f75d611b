//! The life of a registered handler.

use std::fmt;
use std::sync::{Arc, Weak};

use lariat_cache::{ClientIdentity, View};
use lariat_core::{Gvk, ObjectKey};

use super::core::ControllerCore;
use super::slot::{NewHandler, Slot};
use crate::enqueue::Enqueue;
use crate::lane::Lane;
use crate::status::HandlerStatus;

/// A registered handler. Dropping this changes nothing: the handler stays registered.
pub struct Registration {
    slot: Arc<Slot>,
    /// Weak, because a registration that is kept must not keep a kind in use whose handlers are gone.
    core: Weak<ControllerCore>,
    lane: Arc<Lane>,
}

impl Registration {
    /// Registers a handler that was checked, with nobody else registering meanwhile.
    pub(crate) fn begin<V: View>(slot: &Arc<Slot>, new: NewHandler) -> Self {
        let (core, lane) = slot.register::<V>(new);
        Self {
            slot: Arc::clone(slot),
            core: Arc::downgrade(&core),
            lane,
        }
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.slot.gvk()
    }

    /// Returns the name of the handler.
    #[must_use]
    pub fn name(&self) -> &str {
        self.lane.name()
    }

    /// Returns what is counted of the handler.
    #[must_use]
    pub fn status(&self) -> HandlerStatus {
        self.lane.status()
    }

    /// Returns as whom the handler writes, by its options or those of its kind; `None` if as the factory's client does.
    #[must_use]
    pub fn identity(&self) -> Option<&ClientIdentity> {
        self.lane.identity()
    }

    /// Enqueues a key for this handler alone, now; nothing happens once it is deregistered.
    #[track_caller]
    pub fn enqueue(&self, key: &ObjectKey) {
        let lane = self.lane.id().into();
        if let Some(core) = self.core.upgrade() {
            core.enqueue_for(lane, key, &Enqueue::now());
        }
    }

    /// Takes the handler away; once this returns it is not running and will never be called again.
    ///
    /// Its name is free at once. With the last handler of a kind the controller ends, and what was enqueued
    /// for it is forgotten; when nobody else uses the kind's cache, its watch ends after a while and its
    /// memory is freed. Called from the handler itself this would wait for itself, for ever: spawn it
    /// instead.
    ///
    /// # Cancel safety
    ///
    /// No further call begins from the first poll on. If the future is dropped, only the wait for the
    /// call under way is lost.
    pub async fn deregister(self) {
        self.remove();
        self.lane.ended().await;
    }

    /// Takes the handler away without waiting for calls that are under way.
    pub(crate) fn remove(&self) {
        if let Some(core) = self.core.upgrade() {
            core.lanes().remove(&self.lane);
            self.slot.end_if_unused(&core);
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("kind", self.gvk())
            .field("name", &self.lane.name())
            .finish_non_exhaustive()
    }
}
