//! The handle of a registered handler.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{ClientIdentity, View};
use lariat_core::{Gvk, ObjectKey};

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
    lane: Arc<Lane>,
}

impl Registration {
    /// Registers a checked handler. The caller holds the `registering` lock.
    pub(crate) fn begin<V: View>(slot: &Arc<Slot>, new: NewHandler) -> Self {
        Self {
            lane: slot.register::<V>(new),
            slot: Arc::clone(slot),
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
        self.slot.controller().handler_status(&self.lane)
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
        let core = self.slot.controller();
        let lanes = core.lanes().list();
        // The controller outlives the handler, and would keep a key that no handler is called for.
        if lanes.iter().any(|lane| Arc::ptr_eq(lane, &self.lane)) {
            core.enqueue_for(self.lane.id().into(), key, &Enqueue::now());
        }
    }

    /// Deregisters the handler, and waits for its running calls.
    ///
    /// Once this returns, the handler is not running and is never called again.
    ///
    /// Its name can be reused immediately. With the last handler of a kind, the queued keys and the history of the kind
    /// are dropped. If nothing else uses the kind's cache, the watch ends after a while and the memory is freed.
    ///
    /// Calls that are running keep their keys, and the cache: until such a call ends, no handler is called for its key.
    /// Other keys do not wait for it, whichever handlers remain or are registered, also with one worker: while the call
    /// runs, another worker takes the place of its own. [`ControllerStatus::leaving`](crate::ControllerStatus::leaving)
    /// counts such calls, and after a minute they are logged.
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
        // A handler that has ended by its token has let the kind rest then. Keys may have been enqueued since.
        if self.slot.controller().remove(&self.lane) {
            self.slot.rest_if_unused();
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
