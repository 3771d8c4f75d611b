//! The handle of a controller.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Cache, KindClient, View};
use lariat_core::{Cause, Gvk, ObjectKey};

use super::registration::Registration;
use super::slot::Slot;
use crate::error::RegisterError;
use crate::handler::{Handler, Viewed};
use crate::status::ControllerStatus;

/// The controller of a kind, read as `K`; every handle of a kind is the same controller.
///
/// Getting one opens nothing. The watch, the cache and the queue come into being with the first
/// handler, the first key that is enqueued, or the first look at the cache.
pub struct SharedController<K> {
    slot: Arc<Slot>,
    view: PhantomData<fn() -> K>,
}

impl<K: View> SharedController<K> {
    pub(crate) fn new(slot: Arc<Slot>) -> Self {
        Self {
            slot,
            view: PhantomData,
        }
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.slot.gvk()
    }

    /// Returns the same controller, read as another type.
    #[must_use]
    pub fn view<V: View>(&self) -> SharedController<V> {
        SharedController::new(Arc::clone(&self.slot))
    }

    /// Registers a handler under a name of its own.
    ///
    /// Handlers are called in the order of their registration, each with its own retries: after 5 ms,
    /// twice as long after each further failure up to 30 s, and after 2 minutes from the 31st on, unless
    /// the factory has another [`rate_limiter`](crate::FactoryBuilder::rate_limiter). Failures are logged
    /// through `tracing`. A handler reads the kind as the `K` of this handle; for another type, register
    /// it on [`view`](Self::view).
    ///
    /// A handler that is registered while the controller runs is called, alone, for every object there
    /// is, and for every change from then on.
    ///
    /// # Errors
    ///
    /// The name is empty, or another handler of the kind has it.
    ///
    /// # Panics
    ///
    /// If the factory runs and this is the first use of the kind: outside a tokio runtime.
    pub fn register_handler(
        &self,
        name: &str,
        handler: impl Handler<K>,
    ) -> Result<Registration, RegisterError> {
        let core = self.slot.core();
        core.informer().need::<K>();
        core.register(name, Box::new(Viewed::<K, _>::new(handler)))
    }

    /// Enqueues a key for all handlers, now, whether or not there is such an object.
    ///
    /// Keys that are enqueued before the start are kept. A key is queued at most once, however often
    /// it is enqueued.
    #[track_caller]
    pub fn enqueue(&self, key: &ObjectKey) {
        self.enqueue_after(key, Duration::ZERO);
    }

    /// Enqueues a key for all handlers, after a delay that begins now; zero means now.
    ///
    /// The delay is kept, whatever calls the handlers meanwhile; of two delays of one key the earlier
    /// wins. One that no clock can hold means never.
    #[track_caller]
    pub fn enqueue_after(&self, key: &ObjectKey, delay: Duration) {
        let cause = Cause::Enqueued {
            by: None,
            at: Location::caller(),
        };
        self.slot.core().enqueue(key.clone(), delay, cause);
    }

    /// Returns the cache of the kind.
    #[must_use]
    pub fn cache(&self) -> Cache<K> {
        self.slot.core().informer().cache()
    }

    /// Returns the client of the kind; this opens nothing.
    #[must_use]
    pub fn client(&self) -> Arc<KindClient> {
        self.slot.caches().clients().for_kind(self.gvk())
    }

    /// Returns state and totals, or `None` if the controller is not in use.
    #[must_use]
    pub fn status(&self) -> Option<ControllerStatus> {
        self.slot.in_use().map(|core| core.status())
    }

    /// Returns whether two handles are the same controller.
    #[must_use]
    pub fn is_same<V: View>(&self, other: &SharedController<V>) -> bool {
        Arc::ptr_eq(&self.slot, &other.slot)
    }
}

impl<K> Clone for SharedController<K> {
    fn clone(&self) -> Self {
        Self {
            slot: Arc::clone(&self.slot),
            view: PhantomData,
        }
    }
}

impl<K> fmt::Debug for SharedController<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedController")
            .field("gvk", self.slot.gvk())
            .field("in_use", &self.slot.in_use().is_some())
            .finish_non_exhaustive()
    }
}
