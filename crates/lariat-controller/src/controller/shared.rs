//! The handle of a controller.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Cache, ClientIdentity, IdentityError, KindClient, View};
use lariat_core::{Gvk, ObjectKey};

use super::history::RunRecord;
use super::registration::Registration;
use super::slot::{NewHandler, Slot};
use crate::enqueue::{Enqueue, EnqueueError};
use crate::error::RegisterError;
use crate::handler::{Handler, HandlerOptions, Viewed};
use crate::status::ControllerStatus;

/// The controller of a kind, read as `K`; every handle of a kind is the same controller.
///
/// Getting one opens nothing. The watch and the cache come into being with the first handler, the first key
/// that is enqueued, or the first look at the cache, and the queue with the first two. With the last handler
/// the controller ends; the next brings it back.
pub struct SharedController<K> {
    slot: Arc<Slot>,
    identity: Option<ClientIdentity>,
    view: PhantomData<fn() -> K>,
}

impl<K: View> SharedController<K> {
    pub(crate) fn new(slot: Arc<Slot>) -> Self {
        Self {
            slot,
            identity: None,
            view: PhantomData,
        }
    }

    pub(crate) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.slot.gvk()
    }

    /// Returns the same controller, read as another type.
    #[must_use]
    pub fn view<V: View>(&self) -> SharedController<V> {
        SharedController {
            slot: Arc::clone(&self.slot),
            identity: self.identity.clone(),
            view: PhantomData,
        }
    }

    /// Returns the same controller, whose [`client`](Self::client), and the clients of handlers that are
    /// registered through it, act under an identity. There is still one watch.
    ///
    /// # Errors
    ///
    /// The identity cannot be sent.
    pub fn with_identity(&self, identity: ClientIdentity) -> Result<Self, IdentityError> {
        let clients = self.slot.caches().clients();
        clients.for_kind_as(self.gvk(), identity.clone())?;
        Ok(Self {
            identity: Some(identity),
            ..self.clone()
        })
    }

    /// Registers a handler under a name of its own, with the options of the kind.
    ///
    /// Handlers are called one after the other in the order of their registration, so one that takes long keeps those
    /// behind it waiting for this key, until its [timeout](HandlerOptions::timeout). Each has its own retries: after 5 ms,
    /// twice as long after each further failure up to 30 s, and after 2 minutes from the 31st on, unless
    /// other [options](crate::ControllerOptions) say otherwise. Failures are logged
    /// through `tracing`: the first at once as a warning, or as an error if it is not tried again; those that follow
    /// with the same error, of whatever key, are summed up after 1, 10 and 60 seconds, then every ten minutes; a line
    /// says when the handler works again. Each failure is logged at debug level. A handler reads the kind as the `K` of
    /// this handle; for another type, register it on [`view`](Self::view).
    ///
    /// A handler that is registered while the controller runs is called, alone, for every object there
    /// is, and for every change from then on.
    ///
    /// # Errors
    ///
    /// The name is empty, or another handler of the kind has it, or an option makes no sense.
    ///
    /// # Panics
    ///
    /// If the factory runs and this is the first use of the kind: outside a tokio runtime.
    pub fn register_handler(
        &self,
        name: &str,
        handler: impl Handler<K>,
    ) -> Result<Registration, RegisterError> {
        self.register_handler_with(name, HandlerOptions::default(), handler)
    }

    /// Registers a handler with options of its own.
    ///
    /// # Errors
    ///
    /// As for [`register_handler`](Self::register_handler).
    ///
    /// # Panics
    ///
    /// As [`register_handler`](Self::register_handler).
    pub fn register_handler_with(
        &self,
        name: &str,
        options: HandlerOptions,
        handler: impl Handler<K>,
    ) -> Result<Registration, RegisterError> {
        let new = self.new_handler(name, options, handler);
        // Without its factory the controller never runs, and nobody else registers at the same time.
        let factory = self.slot.factory().upgrade();
        let _alone = factory.as_ref().map(|factory| factory.registering());
        self.slot.check(&new)?;
        Ok(Registration::begin::<K>(&self.slot, new))
    }

    /// Makes a handler that is to be registered on this handle.
    pub(crate) fn new_handler(
        &self,
        name: &str,
        mut options: HandlerOptions,
        handler: impl Handler<K>,
    ) -> NewHandler {
        options.identity = options.identity.or_else(|| self.identity.clone());
        NewHandler {
            name: name.to_owned(),
            handler: Box::new(Viewed::<K, _>::new(handler)),
            options,
            is_optional: false,
        }
    }

    /// Takes away now the handlers whose [token](HandlerOptions::until) is cancelled, which the factory does by itself soon
    /// if it runs.
    pub fn sweep(&self) {
        if let Some(core) = self.slot.in_use() {
            self.slot.sweep(&core);
        }
    }

    /// Enqueues a key for all handlers, now, whether or not there is such an object.
    ///
    /// Keys that are enqueued before the start are kept. A key is queued at most once, however often
    /// it is enqueued. This is lasso's `EnqueueKey`; its `Enqueue` is
    /// [`enqueue_rate_limited`](Self::enqueue_rate_limited).
    ///
    /// A kind without handlers to which keys are enqueued is watched for a minute, and the keys are kept, for a
    /// handler that is registered meanwhile.
    ///
    /// # Panics
    ///
    /// If the factory runs and this is the first use of the kind: outside a tokio runtime. So do all ways to
    /// enqueue.
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
        // Only a request to a handler of some name can fail.
        let _ = self.slot.core().enqueue(key, &Enqueue::after(delay));
    }

    /// Enqueues a key for all handlers, after a delay that grows with every such call for the key; see
    /// [`Enqueue::rate_limited`].
    #[track_caller]
    pub fn enqueue_rate_limited(&self, key: &ObjectKey) {
        let _ = self.slot.core().enqueue(key, &Enqueue::rate_limited());
    }

    /// Enqueues a key, written as `namespace/name` or `name`, for all handlers, now.
    ///
    /// # Errors
    ///
    /// The text is not a key.
    #[track_caller]
    pub fn enqueue_key(&self, key: &str) -> Result<(), EnqueueError> {
        let key: ObjectKey = key.parse()?;
        self.slot.core().enqueue(&key, &Enqueue::now())
    }

    /// Enqueues a key as a request says.
    ///
    /// # Errors
    ///
    /// The request names a handler the kind does not have.
    pub fn enqueue_with(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError> {
        match (&request.to, self.slot.in_use()) {
            // A kind that is not in use has no handlers.
            (Some(name), None) => Err(self.no_handler(name, Some(key))),
            _ => self.slot.core().enqueue(key, request),
        }
    }

    /// Enqueues every key in the cache as a request says, at low priority unless it says otherwise, and returns how
    /// many there are; for what all objects depend on and no watch covers, such as a configuration file.
    ///
    /// All are due at once, or after the request's delay, and fresh changes overtake them, as they do a resync. They
    /// are enqueued as one by one with [`enqueue_with`](Self::enqueue_with): whatever a handler's predicate says, and
    /// with the place in the code among the causes. Keys that come into the cache later call the handlers by
    /// themselves. kube-rs has `Controller::reconcile_all_on` for this.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat_controller::{Enqueue, EnqueueError, SharedController};
    ///
    /// # fn example(pods: &SharedController<Pod>) -> Result<(), EnqueueError> {
    /// let count = pods.enqueue_all(&Enqueue::now().to("limits").because("new limits"))?;
    /// println!("{count} pods are looked at again");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The request names a handler the kind does not have.
    pub fn enqueue_all(&self, request: &Enqueue) -> Result<usize, EnqueueError> {
        match (&request.to, self.slot.in_use()) {
            (_, Some(core)) => core.enqueue_all(request),
            (Some(name), None) => Err(self.no_handler(name, None)),
            (None, None) => Ok(0),
        }
    }

    fn no_handler(&self, name: &Arc<str>, key: Option<&ObjectKey>) -> EnqueueError {
        EnqueueError::UnknownHandler {
            gvk: self.gvk().clone(),
            key: key.cloned(),
            name: Arc::clone(name),
            handlers: "(it has none)".to_owned(),
        }
    }

    /// Returns the cache of the kind, which is filled and kept up to date for as long as somebody has it; this
    /// needs no handler.
    ///
    /// # Panics
    ///
    /// If the factory runs and this is the first use of the kind: outside a tokio runtime.
    #[must_use]
    pub fn cache(&self) -> Cache<K> {
        self.slot.informer().cache()
    }

    /// Returns the client of the kind; this opens nothing.
    #[must_use]
    pub fn client(&self) -> Arc<KindClient> {
        let clients = self.slot.caches().clients();
        let identity = self.identity.clone();
        // It was tried when the handle was made.
        let own = identity.and_then(|identity| clients.for_kind_as(self.gvk(), identity).ok());
        own.unwrap_or_else(|| clients.for_kind(self.gvk()))
    }

    /// Returns state and totals, or `None` if the controller is not in use.
    #[must_use]
    pub fn status(&self) -> Option<ControllerStatus> {
        self.slot.in_use().map(|core| core.status())
    }

    /// Returns the last runs, oldest first, as many as [are kept](crate::ControllerOptions::history).
    #[must_use]
    pub fn history(&self) -> Vec<RunRecord> {
        let core = self.slot.in_use();
        core.map_or_else(Vec::new, |core| core.history().all())
    }

    /// Returns the last runs of a key, oldest first: why each happened, who was called, and what came of it.
    ///
    /// They are those among the last runs of the kind, and up to four before them, so that a kind of which many keys
    /// run, or one key very often, does not drive out the others; see [`history`](crate::ControllerOptions::history)
    /// for how many keys that holds.
    #[must_use]
    pub fn why(&self, key: &ObjectKey) -> Vec<RunRecord> {
        let core = self.slot.in_use();
        core.map_or_else(Vec::new, |core| core.history().of(key))
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
            identity: self.identity.clone(),
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
