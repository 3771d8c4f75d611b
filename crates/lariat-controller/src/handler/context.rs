//! What a handler is called with.

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

/// What a handler is called with: which key, in which state, and why.
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

    /// Returns the key this call is about.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        self.call.key()
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.call.gvk()
    }

    /// Returns the object in its newest state, or `None` if it does not exist.
    ///
    /// The newest state is the cache's, or what a handler called before this one returned. It does not
    /// change during the call. The object is decoded when this is first called, and once for all
    /// handlers that read it as the same type.
    ///
    /// # Errors
    ///
    /// The object does not fit the type. Passed on with `?`, the error ends the call without a retry:
    /// only another state of the object can help, and that comes with a call of its own.
    pub fn object(&self) -> Result<Option<Arc<K>>, DecodeError> {
        self.read(self.call.object.as_ref())
    }

    /// Returns the last known state of an object that was deleted since the last successful call.
    ///
    /// With [`object`](Self::object) there as well, another object lives under the same name by now.
    ///
    /// Where several objects of the name were deleted since, each has a call of its own, in the order of the
    /// deletions; one for which the call fails is tried again after the others. At most 32 wait for a handler: beyond
    /// that the oldest are dropped, and a warning is logged.
    ///
    /// # Errors
    ///
    /// The object does not fit the type.
    pub fn deleted(&self) -> Result<Option<Arc<K>>, DecodeError> {
        self.read(self.call.deleted.as_ref())
    }

    fn read(&self, object: Option<&Arc<CachedObject>>) -> Result<Option<Arc<K>>, DecodeError> {
        let value = object
            .map(|object| self.call.kind.informer().store().read(object, self.gvk()))
            .transpose()?;
        Ok(value.inspect(|value| self.call.decoded.keep(value)))
    }

    /// Returns the object without decoding it: its metadata and its JSON.
    #[must_use]
    pub fn raw(&self) -> Option<&Arc<CachedObject>> {
        self.call.object()
    }

    /// Returns the last known state of an object that was deleted since the last successful call, without decoding it.
    #[must_use]
    pub fn last(&self) -> Option<&Arc<CachedObject>> {
        self.call.deleted.as_ref()
    }

    /// Returns whether further objects of the name were deleted than the one that [`deleted`](Self::deleted) returns.
    ///
    /// The handler is called for the next of them at once, unless this call fails.
    #[must_use]
    pub fn has_later_deletions(&self) -> bool {
        self.call.has_later_deletions
    }

    /// Returns why this call happens.
    #[must_use]
    pub fn causes(&self) -> &Causes {
        self.call.causes()
    }

    /// Returns which attempt this is: 1, and one more for every failure in a row before it.
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

    /// Returns the client to write through, for every kind.
    ///
    /// It has the handler's [`identity`](crate::HandlerOptions::identity), if it was given one. What is
    /// written through it is in the caches when the write returns.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, if it is asked for the first time.
    #[must_use]
    pub fn client(&self) -> Client {
        self.call.callee.client(self.call.kind.clients())
    }

    /// Returns a token that is cancelled when the controllers begin to stop.
    ///
    /// A call that is still running when the grace period is over is dropped at its next await.
    ///
    /// A factory that starts again does not call handlers for objects that did not change meanwhile. Work that a
    /// handler leaves behind and ties to this token ends with the stop and does not come back by itself: a handler that
    /// has such work asks to be called again, by [`Outcome::requeue_after`](crate::Outcome::requeue_after), and begins
    /// it anew.
    #[must_use]
    pub fn stopping(&self) -> &CancellationToken {
        self.call.stopping()
    }

    /// Enqueues a key of this kind for all handlers, now.
    #[track_caller]
    pub fn enqueue(&self, key: &ObjectKey) {
        self.enqueue_after(key, Duration::ZERO);
    }

    /// Enqueues a key of this kind for all handlers, after a delay; zero means now.
    ///
    /// The delay is kept, whatever calls the handlers meanwhile; of two delays of one key the earlier
    /// wins. One that no clock can hold means never.
    #[track_caller]
    pub fn enqueue_after(&self, key: &ObjectKey, delay: Duration) {
        let request = Enqueue::after(delay);
        // Only a request to a handler of some name can fail.
        let _ = self.call.kind.enqueue(key, &request);
    }

    /// Enqueues a key of this kind as a request says.
    ///
    /// # Errors
    ///
    /// The request names a handler the kind does not have.
    pub fn enqueue_with(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError> {
        self.call.kind.enqueue(key, request)
    }
}

impl<K> fmt::Debug for Context<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.call).finish()
    }
}
