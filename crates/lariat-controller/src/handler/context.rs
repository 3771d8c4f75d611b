//! What a handler is told.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Cache, CachedObject, DecodeError, View};
use lariat_core::{Cause, Causes, Gvk, ObjectKey};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::controller::ControllerCore;

/// Values that were decoded in a run: the cache itself keeps none, and one decode serves all handlers.
#[derive(Clone, Default)]
pub(crate) struct Decoded(Arc<Mutex<Vec<Arc<dyn Any + Send + Sync>>>>);

impl Decoded {
    /// Keeps a value until the run has ended.
    fn keep<K: View>(&self, value: &Arc<K>) {
        // Metadata is not decoded.
        if !K::NEEDS_CONTENT {
            return;
        }
        let mut kept = self.0.lock();
        let is_it = |each: &Arc<dyn Any + Send + Sync>| {
            std::ptr::addr_eq(Arc::as_ptr(each), Arc::as_ptr(value))
        };
        if !kept.iter().any(is_it) {
            kept.push(Arc::<K>::clone(value));
        }
    }
}

/// One call of one handler, before the view is known.
pub(crate) struct Run {
    pub(crate) core: Arc<ControllerCore>,
    pub(crate) handler: Arc<str>,
    pub(crate) key: ObjectKey,
    /// The newest state, or none if the object does not exist.
    pub(crate) object: Option<Arc<CachedObject>>,
    /// The last state of an object that was deleted.
    pub(crate) deleted: Option<Arc<CachedObject>>,
    /// What was decoded in this run, for the handlers after this one.
    pub(crate) decoded: Decoded,
    pub(crate) causes: Arc<Causes>,
    /// Failures in a row before this call.
    pub(crate) failures: u32,
    pub(crate) stopping: CancellationToken,
}

/// What a handler is told: which key, in which state, and why.
pub struct Context<K> {
    run: Run,
    view: PhantomData<fn() -> K>,
}

impl<K: View> Context<K> {
    pub(crate) fn new(run: Run) -> Self {
        Self {
            run,
            view: PhantomData,
        }
    }

    /// Returns the key this call is about.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.run.key
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.run.core.gvk()
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
        self.read(self.run.object.as_ref())
    }

    /// Returns the last known state of an object that was deleted since the last successful call.
    ///
    /// With [`object`](Self::object) there as well, another object lives under the same name by now.
    ///
    /// # Errors
    ///
    /// The object does not fit the type.
    pub fn deleted(&self) -> Result<Option<Arc<K>>, DecodeError> {
        self.read(self.run.deleted.as_ref())
    }

    fn read(&self, object: Option<&Arc<CachedObject>>) -> Result<Option<Arc<K>>, DecodeError> {
        let value = object
            .map(|object| K::view(object, self.gvk()))
            .transpose()?;
        Ok(value.inspect(|value| self.run.decoded.keep(value)))
    }

    /// Returns the object without decoding it: its metadata and its JSON.
    #[must_use]
    pub fn raw(&self) -> Option<&Arc<CachedObject>> {
        self.run.object.as_ref()
    }

    /// Returns why this call happens.
    #[must_use]
    pub fn causes(&self) -> &Causes {
        &self.run.causes
    }

    /// Returns which attempt this is: 1, and one more for every failure in a row before it.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.run.failures.saturating_add(1)
    }

    /// Returns the name of the handler that is called.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.run.handler
    }

    /// Returns the cache of the kind.
    #[must_use]
    pub fn cache(&self) -> Cache<K> {
        self.run.core.informer().cache()
    }

    /// Returns a token that is cancelled when the controllers begin to stop.
    ///
    /// A call that is still running when the grace period is over is dropped at its next await.
    #[must_use]
    pub fn stopping(&self) -> &CancellationToken {
        &self.run.stopping
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
        let cause = Cause::Enqueued {
            by: Some(Arc::clone(&self.run.handler)),
            at: Location::caller(),
        };
        self.run.core.enqueue(key.clone(), delay, cause);
    }
}

impl<K> fmt::Debug for Context<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("handler", &self.run.handler)
            .field("key", &self.run.key)
            .field("causes", &self.run.causes)
            .finish_non_exhaustive()
    }
}
