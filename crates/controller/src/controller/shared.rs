//! The public handle of a controller.
//!
//! Every method goes through the slot. Methods that enqueue or register create the controller if it is not in use;
//! methods that only read do not.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Cache, ClientIdentity, IdentityError, KindClient, View};
use lariat_core::{Gvk, ObjectKey};
use lariat_queue::WaitsFor;

use super::core::ControllerCore;
use super::history::RunRecord;
use super::registration::Registration;
use super::slot::{NewHandler, Slot};
use crate::enqueue::{Enqueue, EnqueueError};
use crate::error::{NO_HANDLERS, RegisterError, UnknownHandler};
use crate::handler::Handler;
use crate::lane::Lane;
use crate::snapshot::{FailingKey, GivenUpKey, InProgress, QueuedKey, QueuedKeys};
use crate::status::ControllerStatus;

/// The controller of a kind, whose objects are read as `K`.
///
/// All handles of a kind are the same controller: one watch, one cache, one work queue, any number of handlers.
///
/// A handle alone costs nothing. The first handler or the first enqueued key creates the cache and the queue;
/// [`cache`](Self::cache) creates the cache only. With the last handler the use of the cache ends and the queue is
/// emptied; the next handler begins anew. The controller is in use until the calls of its handlers have ended, too.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::SharedControllerFactory;
///
/// # fn example(factory: &SharedControllerFactory) -> Result<(), lariat::controller::EnqueueError> {
/// let pods = factory.for_object::<Pod>();
/// pods.enqueue_key("default/web-0")?;
/// for run in pods.history() {
///     println!("{run}");
/// }
/// # Ok(()) }
/// ```
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

    /// Returns a handle of the same controller that reads objects as another type.
    #[must_use]
    pub fn view<V: View>(&self) -> SharedController<V> {
        SharedController {
            slot: Arc::clone(&self.slot),
            identity: self.identity.clone(),
            view: PhantomData,
        }
    }

    /// Returns a handle of the same controller with an identity for writes.
    ///
    /// The handle's [`client`](Self::client), and the clients of handlers that are registered through it, act under
    /// this identity. The watch is still shared.
    ///
    /// # Errors
    ///
    /// The identity cannot be sent in HTTP headers.
    pub fn with_identity(&self, identity: ClientIdentity) -> Result<Self, IdentityError> {
        let clients = self.slot.caches().clients();
        clients.for_kind_as(self.gvk(), identity.clone())?;
        Ok(Self {
            identity: Some(identity),
            ..self.clone()
        })
    }

    /// Registers a handler.
    ///
    /// The name must be unique among the handlers of the kind. The handler reads objects as the `K` of this handle; for
    /// another type, register it on [`view`](Self::view).
    ///
    /// For one key, handlers are called one after the other, in the order of registration. A slow handler delays the
    /// handlers after it for this key, until its [timeout](crate::HandlerOptions::timeout). Each handler is retried
    /// separately: after 5 ms, doubled by each further failure up to 30 s, and after 2 minutes from the 31st failure
    /// on. The [handler's own options](crate::HandlerOptions::handler), those [of the
    /// kind](crate::ControllerOptions::handlers), and those of the factory change this, in this order of precedence.
    ///
    /// A handler that is registered while the controller runs is called for every existing object, without the other
    /// handlers, and for every change from then on.
    ///
    /// Failures are logged through `tracing`: of each key the first with an error, and then the attempts that are
    /// powers of two, as a warning, or as an error if the failure is not retried. The first with an error is logged at
    /// once. Those of other keys in the next second, then two, four, and so on up to ten minutes, are one line. The
    /// recovery is logged too. At debug level every failure is logged.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::controller::RegisterError;
    /// use lariat::{Context, HandlerResult, Outcome, SharedController};
    ///
    /// async fn log(cx: Context<Pod>) -> HandlerResult {
    ///     println!("{} because {}", cx.key(), cx.causes());
    ///     Ok(Outcome::done())
    /// }
    ///
    /// # fn example(pods: &SharedController<Pod>) -> Result<(), RegisterError> {
    /// pods.register_handler("log", log)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The name is empty or taken, or an option is invalid. Nothing is registered.
    pub fn register_handler(
        &self,
        name: &str,
        handler: impl Handler<K>,
    ) -> Result<Registration, RegisterError> {
        let new = self.new_handler(name, handler);
        // A dropped factory has no lock to take. Its controllers never run again, so the check below is good enough.
        let factory = self.slot.factory().upgrade();
        let _alone = factory.as_ref().map(|factory| factory.registering());
        self.slot.check(&new)?;
        Ok(Registration::begin::<K>(&self.slot, new))
    }

    /// Creates a handler for registration on this handle.
    pub(crate) fn new_handler(&self, name: &str, handler: impl Handler<K>) -> NewHandler {
        let mut new = NewHandler::new(name, handler);
        let identity = &mut new.options.identity;
        *identity = identity.take().or_else(|| self.identity.clone());
        new
    }

    /// Deregisters handlers whose [token](crate::HandlerOptions::until) is cancelled.
    ///
    /// A running factory does this by itself, shortly after the cancellation. Call it if the factory does not run.
    pub fn sweep(&self) {
        if self.slot.in_use().is_some() {
            self.slot.sweep();
        }
    }

    /// Enqueues a key for all handlers, immediately.
    ///
    /// The object need not exist. Keys that are enqueued before the start are kept. A key that is added several times
    /// before a worker gets it is processed once.
    ///
    /// If the kind has no handler, a running factory keeps the kind's watch and queue for a minute, for a handler that
    /// is registered in that time.
    ///
    /// This is lasso's `EnqueueKey`; its `Enqueue` is [`enqueue_rate_limited`](Self::enqueue_rate_limited).
    #[track_caller]
    pub fn enqueue(&self, key: &ObjectKey) {
        self.enqueue_after(key, Duration::ZERO);
    }

    /// Enqueues a key for all handlers after a delay; zero means immediately.
    ///
    /// As with client-go's `AddAfter`, the delayed call happens even if the handlers are called earlier for another
    /// reason. While an `enqueue_after` of the key waits for its time, no second one is scheduled: the earlier time
    /// counts for both. A delay that overflows the clock means never.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::{ObjectKey, SharedController};
    ///
    /// # fn example(pods: &SharedController<Pod>) {
    /// let key = ObjectKey::namespaced("default", "web-0");
    /// pods.enqueue_after(&key, Duration::from_secs(30));
    /// # }
    /// ```
    #[track_caller]
    pub fn enqueue_after(&self, key: &ObjectKey, delay: Duration) {
        // Only a request that names a handler can fail.
        let _ = self.slot.core().enqueue(key, &Enqueue::after(delay));
    }

    /// Enqueues a key for all handlers after a growing delay.
    ///
    /// The delay grows with every such call for the key; see [`Enqueue::rate_limited`].
    #[track_caller]
    pub fn enqueue_rate_limited(&self, key: &ObjectKey) {
        let _ = self.slot.core().enqueue(key, &Enqueue::rate_limited());
    }

    /// Enqueues a key in text form, for all handlers, immediately.
    ///
    /// The text is `namespace/name`, or `name` for a cluster-scoped object.
    ///
    /// # Errors
    ///
    /// The text is not a key.
    #[track_caller]
    pub fn enqueue_key(&self, key: &str) -> Result<(), EnqueueError> {
        let key: ObjectKey = key.parse()?;
        self.slot.core().enqueue(&key, &Enqueue::now())
    }

    /// Enqueues a key according to a request.
    ///
    /// # Errors
    ///
    /// [`UnknownHandler`](EnqueueError::UnknownHandler): the request names a handler that the kind does not have.
    pub fn enqueue_with(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError> {
        match (&request.to, self.slot.opened()) {
            // A kind that is not open has no handlers. The request must not open it in vain.
            (Some(name), None) => Err(self.no_handler(name, Some(key))),
            _ => self.slot.core().enqueue(key, request),
        }
    }

    /// Enqueues every key in the cache according to a request; returns their number.
    ///
    /// Use it when an input changes on which all objects depend and which no watch covers, such as a configuration
    /// file.
    ///
    /// All keys are due immediately, or after the request's delay. The default priority is low, so fresh changes
    /// overtake them, as they overtake a resync. Handlers are called regardless of their predicates, and the line of
    /// code that created the request is among the causes. In a sharded factory, only the keys of this process are
    /// enqueued. If the kind is not in use, there is nothing to enqueue. In kube-rs this is
    /// `Controller::reconcile_all_on`.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::controller::EnqueueError;
    /// use lariat::{Enqueue, SharedController};
    ///
    /// # fn example(pods: &SharedController<Pod>) -> Result<(), EnqueueError> {
    /// let count = pods.enqueue_all(&Enqueue::now().to("limits").because("new limits"))?;
    /// println!("{count} pods are enqueued");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`UnknownHandler`](EnqueueError::UnknownHandler): the request names a handler that the kind does not have.
    pub fn enqueue_all(&self, request: &Enqueue) -> Result<usize, EnqueueError> {
        match (&request.to, self.slot.in_use()) {
            (_, Some(core)) => core.enqueue_all(request),
            (Some(name), None) => Err(self.no_handler(name, None)),
            (None, None) => Ok(0),
        }
    }

    /// Reads from the controller if it is in use.
    fn read<T: Default>(&self, read: impl FnOnce(&ControllerCore) -> T) -> T {
        let core = self.slot.in_use();
        core.map(|core| read(&core)).unwrap_or_default()
    }

    fn no_handler(&self, name: &Arc<str>, key: Option<&ObjectKey>) -> EnqueueError {
        EnqueueError::UnknownHandler {
            gvk: self.gvk().clone(),
            key: key.cloned(),
            name: Arc::clone(name),
            handlers: NO_HANDLERS.to_owned(),
        }
    }

    /// Returns the cache of the kind; no handler is needed.
    ///
    /// While the factory runs, the cache is filled and kept up to date as long as the returned value or a clone of it
    /// exists. It is empty until the first list has arrived.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::{ObjectKey, SharedController};
    ///
    /// # fn example(pods: &SharedController<Pod>) -> Result<(), lariat::cache::DecodeError> {
    /// let cache = pods.cache();
    /// let pod = cache.get(&ObjectKey::namespaced("default", "web-0"))?;
    /// println!("{} pods, web-0 is cached: {}", cache.len(), pod.is_some());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn cache(&self) -> Cache<K> {
        self.slot.informer().cache()
    }

    /// Lists all objects of the kind again, if the kind has a running cache.
    ///
    /// Returns whether it has. The cache keeps its objects meanwhile, and handlers are called for the differences; see
    /// [`Informer::relist`](lariat_cache::Informer::relist).
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::SharedController;
    ///
    /// # fn example(pods: &SharedController<Pod>) {
    /// if !pods.relist() {
    ///     println!("{} is not watched", pods.gvk());
    /// }
    /// # }
    /// ```
    #[must_use = "without a running cache nothing is read"]
    pub fn relist(&self) -> bool {
        let informer = self.slot.caches().existing(self.gvk());
        informer.is_some_and(|informer| informer.relist())
    }

    /// Returns the client of the kind, without creating its cache.
    #[must_use]
    pub fn client(&self) -> Arc<KindClient> {
        let clients = self.slot.caches().clients();
        let identity = self.identity.clone();
        // The identity was checked when the handle was created.
        let own = identity.and_then(|identity| clients.for_kind_as(self.gvk(), identity).ok());
        own.unwrap_or_else(|| clients.for_kind(self.gvk()))
    }

    /// Returns the state and the counters; `None` if the controller is not in use.
    #[must_use]
    pub fn status(&self) -> Option<ControllerStatus> {
        let (core, opened) = self.slot.used()?;
        Some(core.status(&opened))
    }

    /// Returns the calls that are running, longest first.
    #[must_use]
    pub fn in_progress(&self) -> Vec<InProgress> {
        self.read(|core| core.in_progress())
    }

    /// Returns the queued keys, with the handlers that are due and the delays.
    ///
    /// The keys are in this order: ready keys as they would be dequeued next; keys that are being processed; keys that
    /// wait for the end of a drain; keys that wait for handlers; delayed keys by time. At most `limit` keys are copied.
    /// The cost does not grow with the number of queued keys; see
    /// [`WorkQueue::snapshot`](lariat_queue::WorkQueue::snapshot).
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::SharedController;
    ///
    /// # fn example(pods: &SharedController<Pod>) {
    /// for queued in pods.queued(10).keys {
    ///     println!("{} has been due for {:?}", queued.key, queued.due_for);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn queued(&self, limit: usize) -> QueuedKeys {
        self.read(|core| core.queued(limit))
    }

    /// Returns the state of a queued key; `None` if it is not queued.
    #[must_use]
    pub fn queued_key(&self, key: &ObjectKey) -> Option<QueuedKey> {
        self.slot.in_use()?.queued_key(key)
    }

    /// Returns the keys that handlers fail for, most failures in a row first.
    ///
    /// At most `limit` keys are returned, and at most 4,096 keys of a handler are tracked. Keys that are [given
    /// up](Self::given_up_keys), conflicts and [ignored](crate::Ignore) errors do not count. The cost grows with the
    /// number of failing keys, and with `limit` times the runs in the history.
    #[must_use]
    pub fn failing_keys(&self, limit: usize) -> Vec<FailingKey> {
        self.read(|core| core.failing_keys(limit))
    }

    /// Returns the keys that handlers have given up, those of the newest calls first.
    ///
    /// A handler gives a key up if a call for an existing object fails with a terminal error, exhausts the retries, or
    /// finds an object that does not decode, and [`requeue_final`](crate::HandlerOptions::requeue_final) sets no delay.
    /// It is called again when the object changes, the key is enqueued, or a resync comes; a relist calls it only for
    /// what differs. A key leaves with the next call that ends otherwise, when its object is deleted or moves to
    /// another member of a ring, and when the handler is deregistered. While the factory does not run, there are none.
    ///
    /// At most `limit` keys are returned, and at most 4,096 keys of a handler are kept, the newest ones.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::SharedController;
    ///
    /// # fn example(pods: &SharedController<Pod>) {
    /// for given_up in pods.given_up_keys(10) {
    ///     println!("{} has given {} up: {:?}", given_up.handler, given_up.key, given_up.error);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn given_up_keys(&self, limit: usize) -> Vec<GivenUpKey> {
        self.read(|core| core.given_up_keys(limit))
    }

    /// Returns the handlers that have given up a key.
    ///
    /// See [`given_up_keys`](Self::given_up_keys).
    #[must_use]
    pub fn given_up_of(&self, key: &ObjectKey) -> Vec<GivenUpKey> {
        self.read(|core| core.given_up_of(key))
    }

    /// Pauses a handler until [`resume`](Self::resume).
    ///
    /// Returns whether it was not paused before. Running calls continue. Keys that become due for the handler wait
    /// without occupying a worker: none is lost, and further changes of a waiting key merge. The other handlers of the
    /// kind are called as before. A pause survives a stop and a start, and ends when the handler is deregistered. A
    /// stop does not wait for the waiting keys.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::controller::UnknownHandler;
    /// use lariat::SharedController;
    ///
    /// # fn example(pods: &SharedController<Pod>) -> Result<(), UnknownHandler> {
    /// pods.pause("evict")?;
    /// assert!(pods.status().is_some_and(|status| status.handlers[0].is_paused));
    /// pods.resume("evict")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The kind has no handler of this name; the error lists its handlers.
    pub fn pause(&self, handler: &str) -> Result<bool, UnknownHandler> {
        let (core, lane) = self.handler(handler)?;
        // A call that the queue has admitted goes on, and ends as usual.
        let is_new = core.queue().close(lane.id(), WaitsFor::Resume);
        core.forget_if_removed(&lane);
        if is_new {
            let kind = core.gvk();
            tracing::info!(%kind, %handler, "handler is paused");
        }
        Ok(is_new)
    }

    /// Ends the pause of a handler; returns whether it was paused.
    ///
    /// The handler is called once for each waiting key, with the newest state and all causes since the pause began.
    ///
    /// # Errors
    ///
    /// As for [`pause`](Self::pause).
    pub fn resume(&self, handler: &str) -> Result<bool, UnknownHandler> {
        let (core, lane) = self.handler(handler)?;
        Ok(core.resume(&lane))
    }

    fn handler(&self, name: &str) -> Result<(Arc<ControllerCore>, Arc<Lane>), UnknownHandler> {
        let unknown = |handlers: String| UnknownHandler {
            gvk: self.gvk().clone(),
            name: name.to_owned(),
            handlers,
        };
        let none = || unknown(NO_HANDLERS.to_owned());
        let core = self.slot.in_use().ok_or_else(none)?;
        let lanes = core.lanes().list();
        let lane = lanes.named(name).ok_or_else(|| unknown(lanes.names()))?;
        Ok((Arc::clone(&core), Arc::clone(lane)))
    }

    /// Returns the last runs of the kind, oldest first.
    ///
    /// [`ControllerOptions::history`](crate::ControllerOptions::history) sets how many are kept (default 256). While
    /// the controller is not in use, there are none.
    #[must_use]
    pub fn history(&self) -> Vec<RunRecord> {
        self.read(|core| core.history().all())
    }

    /// Returns the last runs of a key, oldest first.
    ///
    /// A record tells why the key was processed, which handlers were called, and with which result.
    ///
    /// The result has the key's runs among the last runs of the kind, plus up to four earlier ones, so that busy keys
    /// do not evict the runs of quiet ones. See [`history`](crate::ControllerOptions::history) for the bounds.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::{ObjectKey, SharedController};
    ///
    /// # fn example(pods: &SharedController<Pod>) {
    /// for run in pods.history_of(&ObjectKey::namespaced("default", "web-0")) {
    ///     for call in &run.calls {
    ///         println!("{} {}: {}", call.handler, call.outcome.as_str(), run.causes);
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn history_of(&self, key: &ObjectKey) -> Vec<RunRecord> {
        self.read(|core| core.history().of(key))
    }

    /// Returns whether two handles refer to the same controller.
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
