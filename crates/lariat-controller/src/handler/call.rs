//! A call of a handler: what it is about, and how it gets to the handler.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use lariat_cache::{CachedObject, ClientIdentity, Informer, SharedClientFactory, View};
use lariat_core::{Causes, Gvk, ObjectKey};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::error::HandlerError;
use super::outcome::Outcome;
use crate::enqueue::{Enqueue, EnqueueError};

/// What a handler returns.
pub type HandlerResult = Result<Outcome, HandlerError>;

/// What a call needs of the controller of its kind.
pub(crate) trait CallKind: Send + Sync {
    fn informer(&self) -> &Informer;

    fn clients(&self) -> &SharedClientFactory;

    /// Enqueues a key of the kind as a request says.
    fn enqueue(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError>;
}

/// A handler under its name, with the middleware around it.
pub(crate) struct Callee {
    pub(crate) name: Arc<str>,
    pub(crate) handler: Box<dyn AnyHandler>,
    /// The outermost first.
    pub(crate) middleware: Vec<Arc<dyn AnyMiddleware>>,
    /// As whom the handler writes; none for the factory's client.
    pub(crate) identity: Option<ClientIdentity>,
}

/// A handler whose view is forgotten, as a lane keeps it.
pub(crate) trait AnyHandler: Send + Sync {
    /// Whether it reads objects, rather than their metadata alone.
    fn needs_content(&self) -> bool;

    fn handle(&self, call: Call) -> BoxFuture<'_, HandlerResult>;
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
    pub(crate) kind: Arc<dyn CallKind>,
    pub(crate) callee: Arc<Callee>,
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
        self.kind.informer().gvk()
    }

    /// Returns the key this call is about.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Returns the name of the handler that is called.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.callee.name
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

impl Callee {
    /// Returns the client the handler writes through.
    pub(super) fn client(&self, clients: &SharedClientFactory) -> Client {
        let identity = self.identity.clone();
        // It was tried when the handler was registered.
        let own = identity.and_then(|identity| clients.client_as(identity).ok());
        own.unwrap_or_else(|| clients.client())
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

/// What a call goes through next: more middleware, and the handler in the end.
#[must_use = "a call that is not passed on does not reach its handler"]
pub struct Next {
    callee: Arc<Callee>,
    at: usize,
}

impl Next {
    /// Passes the call on.
    ///
    /// # Errors
    ///
    /// What the handler, or middleware before it, fails with.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the call of the handler at its present await.
    pub async fn run(self, call: Call) -> HandlerResult {
        let Self { callee, at } = self;
        match callee.middleware.get(at) {
            Some(middleware) => {
                let next = Self {
                    callee: Arc::clone(&callee),
                    at: at + 1,
                };
                middleware.handle(call, next).await
            }
            None => callee.handler.handle(call).await,
        }
    }
}

/// Calls a handler through its middleware.
pub(crate) async fn through(call: Call) -> HandlerResult {
    let callee = Arc::clone(&call.callee);
    if callee.middleware.is_empty() {
        return callee.handler.handle(call).await;
    }
    Next { callee, at: 0 }.run(call).await
}

/// Middleware whose type is forgotten.
pub(crate) trait AnyMiddleware: Send + Sync {
    fn handle(&self, call: Call, next: Next) -> BoxFuture<'_, HandlerResult>;
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next")
            .field("handler", &self.callee.name)
            .field("at", &self.at)
            .finish()
    }
}
