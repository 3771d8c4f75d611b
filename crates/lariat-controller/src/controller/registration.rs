//! The handle of a registered handler.

use std::fmt;
use std::sync::{Arc, Weak};

use lariat_cache::{ClientIdentity, View};
use lariat_core::{Gvk, ObjectKey};

use super::core::ControllerCore;
use super::slot::{NewHandler, Slot};
use crate::enqueue::Enqueue;
use crate::lane::Lane;
use crate::status::HandlerStatus;

/// A registered handler.
///
/// Dropping this handle leaves the handler registered; [`deregister`](Self::deregister) ends it.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::controller::RegisterError;
/// use lariat::{Context, Outcome, SharedController};
///
/// # async fn example(pods: &SharedController<Pod>) -> Result<(), RegisterError> {
/// let log = |cx: Context<Pod>| async move {
///     println!("{}", cx.key());
///     Ok(Outcome::done())
/// };
/// let registration = pods.register_handler("log", log)?;
/// println!("{} calls so far", registration.status().calls);
/// registration.deregister().await;
/// # Ok(()) }
/// ```
pub struct Registration {
    slot: Arc<Slot>,
    /// Weak, so that a registration does not keep a controller alive that has ended.
    core: Weak<ControllerCore>,
    lane: Arc<Lane>,
}

impl Registration {
    /// Registers a checked handler. The caller holds the `registering` lock.
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

    /// Returns the counters of the handler.
    #[must_use]
    pub fn status(&self) -> HandlerStatus {
        match self.core.upgrade() {
            Some(core) => core.handler_status(&self.lane),
            None => self.lane.status(),
        }
    }

    /// Returns the identity that the handler writes with.
    ///
    /// `None` means the identity of the factory's client.
    #[must_use]
    pub fn identity(&self) -> Option<&ClientIdentity> {
        self.lane.identity()
    }

    /// Enqueues a key for this handler only, immediately.
    ///
    /// The object need not exist. Once the handler is deregistered, this does nothing.
    #[track_caller]
    pub fn enqueue(&self, key: &ObjectKey) {
        let lane = self.lane.id().into();
        if let Some(core) = self.core.upgrade() {
            core.enqueue_for(lane, key, &Enqueue::now());
        }
    }

    /// Deregisters the handler, and waits for its running calls.
    ///
    /// Once this returns, the handler is not running and is never called again.
    ///
    /// Its name can be reused immediately. With the last handler of a kind, the controller ends and its queued keys are
    /// dropped. If nothing else uses the kind's cache, the watch ends after a while and the memory is freed.
    ///
    /// A handler that awaits its own deregistration waits forever. Spawn the call on another task instead.
    ///
    /// # Cancel safety
    ///
    /// The handler is deregistered by the first poll. Dropping the future afterwards only ends the wait for running
    /// calls.
    pub async fn deregister(self) {
        self.remove();
        self.lane.ended().await;
    }

    /// Deregisters the handler without waiting for running calls.
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
