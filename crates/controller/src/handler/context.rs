//! The argument of a handler.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use lariat_cache::{Cache, CachedObject, DecodeError, View};
use lariat_core::{Causes, Gvk, ObjectKey};
use tokio_util::sync::CancellationToken;

use super::call::Call;
use crate::enqueue::{Enqueue, EnqueueError};

/// The argument of a handler: the key, its object, and the causes of the call.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::{Context, HandlerResult, Outcome};
///
/// async fn log(cx: Context<Pod>) -> HandlerResult {
///     let Some(pod) = cx.object()? else {
///         println!("{} does not exist any more", cx.key());
///         return Ok(Outcome::done());
///     };
///     let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
///     println!("{}: {phase:?} because {}", cx.key(), cx.causes());
///     Ok(Outcome::done())
/// }
/// # let _ = log;
/// ```
pub struct Context<K> {
    call: Call,
    view: PhantomData<fn() -> K>,
}

impl<K: View> Context<K> {
    pub(crate) fn new(call: Call) -> Self {
        Self {
            call,
            view: PhantomData,
        }
    }

    /// Returns the same call, with its object read as another type.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::cache::Metadata;
    /// use lariat::{Context, HandlerResult, Outcome};
    ///
    /// async fn log(cx: Context<Pod>) -> HandlerResult {
    ///     // Metadata can be read even if the object does not decode as a Pod.
    ///     let object = cx.viewed::<Metadata>().object()?;
    ///     let labels = object.map(|object| object.labels().iter().count());
    ///     println!("{} has {labels:?} labels", cx.key());
    ///     Ok(Outcome::done())
    /// }
    /// # let _ = log;
    /// ```
    #[must_use]
    pub fn viewed<V: View>(&self) -> Context<V> {
        Context::new(self.call.clone())
    }

    /// Returns the key of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        self.call.key()
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.call.gvk()
    }

    /// Returns the newest state of the object, or `None` if it does not exist.
    ///
    /// The newest state is the cache's, or the one that an earlier handler of this run
    /// [returned](crate::Outcome::with_updated). It does not change during the call. The object is decoded on first
    /// use, once for all handlers that read it as the same type.
    ///
    /// # Errors
    ///
    /// The object cannot be decoded as the type. Passed on with `?`, the error is terminal: only a change of the object
    /// can help, and a change calls the handler again.
    pub fn object(&self) -> Result<Option<Arc<K>>, DecodeError> {
        self.read(self.call.object.as_ref())
    }

    /// Returns the last state of an object that was deleted since the last success.
    ///
    /// If [`object`](Self::object) returns an object as well, another one was created under the same name.
    ///
    /// If several objects of this name were deleted, each gets a call of its own, in the order of the deletions. A
    /// deletion whose call fails is retried after the others. At most 32 deletions per name wait for a handler; then
    /// the oldest are dropped, and a warning is logged. A deletion while the process does not run is not seen; cleanup
    /// that must happen needs a finalizer.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::{Context, HandlerResult, Outcome};
    ///
    /// async fn clean_up(cx: Context<Pod>) -> HandlerResult {
    ///     if let Some(pod) = cx.deleted()? {
    ///         println!("{} with uid {:?} was deleted", cx.key(), pod.metadata.uid);
    ///     }
    ///     Ok(Outcome::done())
    /// }
    /// # let _ = clean_up;
    /// ```
    ///
    /// # Errors
    ///
    /// The object cannot be decoded as the type.
    pub fn deleted(&self) -> Result<Option<Arc<K>>, DecodeError> {
        self.read(self.call.deleted.as_ref())
    }

    fn read(&self, object: Option<&Arc<CachedObject>>) -> Result<Option<Arc<K>>, DecodeError> {
        let value = object
            .map(|object| self.call.kind.informer().store().read(object, self.gvk()))
            .transpose()?;
        // Kept for later handlers of this run that read the same type.
        Ok(value.inspect(|value| self.call.decoded.keep(value)))
    }

    /// Returns the newest state of the object, undecoded: its metadata and its JSON.
    #[must_use]
    pub fn raw(&self) -> Option<&Arc<CachedObject>> {
        self.call.object()
    }

    /// Returns the state that [`deleted`](Self::deleted) decodes, undecoded.
    #[must_use]
    pub fn last_known(&self) -> Option<&Arc<CachedObject>> {
        self.call.deleted.as_ref()
    }

    /// Returns whether more deletions follow the one in [`deleted`](Self::deleted).
    ///
    /// The handler is called for the next one immediately, unless this call fails.
    #[must_use]
    pub fn has_later_deletions(&self) -> bool {
        self.call.has_later_deletions
    }

    /// Returns why the key is handled; all handlers of a run get the same causes.
    #[must_use]
    pub fn causes(&self) -> &Causes {
        self.call.causes()
    }

    /// Returns the number of the attempt: 1 plus the failures in a row before.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.call.attempt()
    }

    /// Returns the name of the handler that is called.
    #[must_use]
    pub fn handler(&self) -> &str {
        self.call.handler()
    }

    /// Returns the number of the run; see [`Call::run`].
    #[must_use]
    pub fn run(&self) -> u64 {
        self.call.run()
    }

    /// Returns the cache of the kind.
    #[must_use]
    pub fn cache(&self) -> Cache<K> {
        self.call.kind.informer().cache()
    }

    /// Returns the client to use for writes, of any kind.
    ///
    /// It acts under the handler's [`identity`](crate::HandlerOptions::identity), if one is set. A write through it is
    /// visible in the caches when it returns.
    ///
    /// It has the authority of this call, on whichever task or thread it is used, and also after the call: the
    /// [gates](crate::Gate) of the handler and of the factory decide on its writes, and with an election its writes are
    /// sent only in the [term](lariat_lease::Term) in which the call began. The term is checked right before each
    /// attempt, after every wait, and an attempt that has no answer at the deadline is aborted: then the write may have
    /// been carried out, and [`Fenced::was_sent`](lariat_lease::Fenced::was_sent) says so. A request that has been
    /// handed to the connection can still arrive later. The client remains useless in a later term of this process.
    ///
    /// Further calls of this method return clones of one client, which is created on first use.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime for the first time.
    #[must_use]
    pub fn client(&self) -> Client {
        self.call.client()
    }

    /// Returns a token that is cancelled when the factory begins to stop.
    ///
    /// A call that still runs when the grace period is over is dropped at its next await.
    ///
    /// A factory that is started again does not call handlers for objects that have not changed. So background work
    /// that a handler spawns and ends with this token is not started again by itself. Such a handler should return
    /// [`Outcome::requeue_after`](crate::Outcome::requeue_after), and start its work again in that call.
    #[must_use]
    pub fn stopping(&self) -> &CancellationToken {
        self.call.stopping()
    }

    /// Enqueues a key of this kind for all handlers, immediately.
    ///
    /// The key is ignored if the last handler of the kind was deregistered during the call.
    #[track_caller]
    pub fn enqueue(&self, key: &ObjectKey) {
        self.enqueue_after(key, Duration::ZERO);
    }

    /// Enqueues a key of this kind after a delay; zero means immediately.
    ///
    /// As with client-go's `AddAfter`, the delayed call happens even if the handlers are called earlier for another
    /// reason. While an `enqueue_after` of the key waits for its time, no second one is scheduled: the earlier time
    /// counts for both. A delay that overflows the clock means never.
    #[track_caller]
    pub fn enqueue_after(&self, key: &ObjectKey, delay: Duration) {
        let request = Enqueue::after(delay);
        // Only a request that names a handler can fail.
        let _ = self.call.kind.enqueue(key, &request);
    }

    /// Enqueues a key of this kind according to a request.
    ///
    /// # Errors
    ///
    /// [`UnknownHandler`](EnqueueError::UnknownHandler): the request names a handler that the kind does not have.
    pub fn enqueue_with(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError> {
        self.call.kind.enqueue(key, request)
    }
}

impl<K> fmt::Debug for Context<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.call).finish()
    }
}
