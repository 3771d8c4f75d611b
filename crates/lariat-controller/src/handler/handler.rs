//! Handlers, and the calls they get.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;
use lariat_cache::{CachedObject, View};
use lariat_core::{Causes, Gvk, ObjectKey};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::error::HandlerError;
use super::outcome::Outcome;
use crate::controller::ControllerCore;
use crate::lane::Lane;

/// What a handler returns.
pub type HandlerResult = Result<Outcome, HandlerError>;

/// Code that is called for the keys of a kind, with the object read as `K`.
///
/// Every async function and closure from [`Context<K>`] to [`HandlerResult`] is a handler; implement
/// the trait for a type that carries more.
///
/// A handler is called at least once after every change, with a state at least as new, and never for
/// one key twice at the same time. Several changes may come as one call, so it should look at what is,
/// rather than at what happened. It may be called again although nothing changed.
///
/// ```
/// use lariat_controller::{Context, Handler, HandlerResult, Outcome};
/// use lariat_cache::Metadata;
///
/// async fn log(cx: Context<Metadata>) -> HandlerResult {
///     println!("{} because {}", cx.key(), cx.causes());
///     Ok(Outcome::done())
/// }
///
/// fn takes_a_handler(_: impl Handler<Metadata>) {}
/// takes_a_handler(log);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of `{K}`",
    label = "not a handler of `{K}`",
    note = "a handler is `async fn(Context<{K}>) -> HandlerResult`, or a closure \
            `|cx: Context<{K}>| async move {{ … Ok(Outcome::done()) }}`"
)]
pub trait Handler<K>: Send + Sync + 'static {
    /// Handles a key.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped, at whatever await it is, when the handler's timeout is over, or the grace period of a
    /// stop. The key comes again.
    fn handle(&self, cx: Context<K>) -> impl Future<Output = HandlerResult> + Send;
}

impl<K, F, Fut> Handler<K> for F
where
    F: Fn(Context<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult> + Send,
{
    fn handle(&self, cx: Context<K>) -> impl Future<Output = HandlerResult> + Send {
        self(cx)
    }
}

/// A handler whose view is forgotten, as lanes keep it.
pub(crate) trait AnyHandler: Send + Sync {
    /// Whether it reads objects, rather than their metadata alone.
    fn needs_content(&self) -> bool;

    fn handle(&self, call: Call) -> BoxFuture<'_, HandlerResult>;
}

/// A handler with its view.
pub(crate) struct Viewed<K, H> {
    handler: H,
    view: PhantomData<fn(K)>,
}

impl<K: View, H: Handler<K>> Viewed<K, H> {
    pub(crate) fn new(handler: H) -> Self {
        Self {
            handler,
            view: PhantomData,
        }
    }
}

impl<K: View, H: Handler<K>> AnyHandler for Viewed<K, H> {
    fn needs_content(&self) -> bool {
        K::NEEDS_CONTENT
    }

    fn handle(&self, call: Call) -> BoxFuture<'_, HandlerResult> {
        // Inside the future, so that a handler that panics before its first await is caught too.
        Box::pin(async move { self.handler.handle(Context::new(call)).await })
    }
}

/// Values that were decoded in a run: the cache itself keeps none, and one decode serves all handlers.
#[derive(Clone, Default)]
pub(crate) struct Decoded(Arc<Mutex<Vec<Arc<dyn Any + Send + Sync>>>>);

impl Decoded {
    /// Keeps a value until the run has ended.
    pub(super) fn keep<K: View>(&self, value: &Arc<K>) {
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

/// One call of one handler: which key, in which state, and why.
///
/// [`Middleware`](crate::Middleware) sees calls like this; handlers see them as a
/// [`Context`](crate::Context), which reads the object as a type.
pub struct Call {
    pub(crate) core: Arc<ControllerCore>,
    pub(crate) lane: Arc<Lane>,
    pub(crate) run: u64,
    pub(crate) key: ObjectKey,
    /// The newest state, or none if the object does not exist.
    pub(crate) object: Option<Arc<CachedObject>>,
    /// The last state of an object that was deleted.
    pub(crate) deleted: Option<Arc<CachedObject>>,
    /// Whether another one of the same name was deleted, which a call after this one shows.
    pub(crate) has_later_deletions: bool,
    /// What was decoded in this run, for the handlers after this one.
    pub(crate) decoded: Decoded,
    pub(crate) causes: Arc<Causes>,
    /// Failures in a row before this call.
    pub(crate) failures: u32,
    /// Shared, because cloning a token takes a lock.
    pub(crate) stopping: Arc<CancellationToken>,
}

impl Call {
    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.core.gvk()
    }

    /// Returns the key this call is about.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Returns the name of the handler that is called.
    #[must_use]
    pub fn handler(&self) -> &str {
        self.lane.name()
    }

    /// Returns the object in its newest state without decoding it, or `None` if it does not exist.
    #[must_use]
    pub fn object(&self) -> Option<&Arc<CachedObject>> {
        self.object.as_ref()
    }

    /// Returns why this call happens.
    #[must_use]
    pub fn causes(&self) -> &Causes {
        &self.causes
    }

    /// Returns which attempt this is: 1, and one more for every failure in a row before it.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.failures.saturating_add(1)
    }

    /// Returns the number of the run, counted from 1 and unique in its factory: all handlers that are called for
    /// one key at one time share it. controller-runtime has a `reconcileID` for that.
    #[must_use]
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Returns a token that is cancelled when the controllers begin to stop.
    #[must_use]
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("kind", self.gvk())
            .field("key", &self.key)
            .field("handler", &self.handler())
            .field("run", &self.run)
            .field("causes", &self.causes)
            .finish_non_exhaustive()
    }
}
