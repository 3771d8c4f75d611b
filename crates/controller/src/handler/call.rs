//! The call of a handler, and its path through the middleware.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use kube::Client;
use lariat_cache::{CachedObject, ClientIdentity, Informer, View};
use lariat_core::{Causes, Gvk, ObjectKey};
use lariat_lease::Term;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::error::HandlerError;
use super::outcome::Outcome;
use crate::clients::CallClients;
use crate::current::Caller;
use crate::enqueue::{Enqueue, EnqueueError};
use crate::gate::Gate;

/// The result of a handler: an [`Outcome`](crate::Outcome), or an error.
pub type HandlerResult = Result<Outcome, HandlerError>;

/// The controller of a kind, as a call uses it.
pub(crate) trait CallKind: Send + Sync {
    /// Returns the informer of the kind.
    fn informer(&self) -> &Informer;

    /// Returns the creator of clients for calls.
    fn clients(&self) -> &CallClients;

    /// Enqueues a key of the kind according to a request.
    fn enqueue(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError>;
}

/// A named handler with the middleware around it.
pub(crate) struct Callee {
    pub(crate) name: Arc<str>,
    pub(crate) handler: Box<dyn AnyHandler>,
    /// The middleware, outermost first.
    pub(crate) middleware: Vec<Arc<dyn AnyMiddleware>>,
    /// The identity of the handler's writes; none for the factory client's.
    pub(crate) identity: Option<ClientIdentity>,
    /// The gates to ask before the handler writes.
    pub(crate) gates: Arc<[Arc<dyn Gate>]>,
}

/// A handler with its view type erased.
pub(crate) trait AnyHandler: Send + Sync {
    /// Returns whether the handler reads the content of objects, not only metadata.
    fn needs_content(&self) -> bool;

    /// Calls the handler.
    fn handle(&self, call: Call) -> BoxFuture<'_, HandlerResult>;
}

/// The values that were decoded in a run.
///
/// The cache keeps only weak references to decoded values. These references keep them until the run ends, so that one
/// decode serves all its handlers.
#[derive(Clone, Default)]
pub(crate) struct Decoded(Arc<Mutex<Vec<Arc<dyn Any + Send + Sync>>>>);

impl Decoded {
    /// Keeps a value until the run ends.
    pub(super) fn keep<K: View>(&self, value: &Arc<K>) {
        // Metadata costs no decoding, so it is not kept.
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

/// A call of a handler: the key, its object, and the causes.
///
/// [`Middleware`](crate::Middleware) gets calls in this form. Handlers get a [`Context`](crate::Context), which decodes
/// the object.
///
/// ```
/// use lariat::controller::{Call, Next};
/// use lariat::HandlerResult;
///
/// async fn log_retries(call: Call, next: Next) -> HandlerResult {
///     if call.attempt() > 1 {
///         println!("attempt {} of {} for {}", call.attempt(), call.handler(), call.key());
///     }
///     next.run(call).await
/// }
/// # let _ = log_retries;
/// ```
#[derive(Clone)]
pub struct Call {
    pub(crate) kind: Arc<dyn CallKind>,
    pub(crate) callee: Arc<Callee>,
    pub(crate) run: u64,
    pub(crate) key: ObjectKey,
    /// The newest state; none if the object does not exist.
    pub(crate) object: Option<Arc<CachedObject>>,
    /// The last state of a deleted object.
    pub(crate) deleted: Option<Arc<CachedObject>>,
    /// Whether further objects of this name were deleted; each gets a later call.
    pub(crate) has_later_deletions: bool,
    /// The values decoded in this run, for the handlers after this one.
    pub(crate) decoded: Decoded,
    pub(crate) causes: Arc<Causes>,
    /// The number of failures in a row before this call.
    pub(crate) failures: u32,
    /// The token of a stop. Shared, because cloning a token takes a lock.
    pub(crate) stopping: Arc<CancellationToken>,
    /// The term in which the call may write; `None` without an election.
    pub(crate) term: Option<Term>,
    /// The client of the call, once it was asked for.
    pub(crate) client: OnceLock<Box<Client>>,
}

impl Call {
    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.kind.informer().gvk()
    }

    /// Returns the key of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Returns the name of the handler that is called.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.callee.name
    }

    /// Returns the newest state of the object, undecoded; `None` if it does not exist.
    #[must_use]
    pub fn object(&self) -> Option<&Arc<CachedObject>> {
        self.object.as_ref()
    }

    /// Returns why the key is handled; all handlers of a run get the same causes.
    #[must_use]
    pub fn causes(&self) -> &Causes {
        &self.causes
    }

    /// Returns the number of the attempt: 1 plus the failures in a row before.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.failures.saturating_add(1)
    }

    /// Returns the number of the run, from 1, unique within the factory.
    ///
    /// All handlers that are called for a key in one run share it. controller-runtime calls it `reconcileID`.
    #[must_use]
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Returns a token that is cancelled when the factory begins to stop.
    #[must_use]
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Returns the client of the call; see [`Context::client`](crate::Context::client).
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime, and it is the first time in this call.
    #[must_use]
    pub fn client(&self) -> Client {
        let make = || {
            let clients = self.kind.clients();
            Box::new(clients.of_call(self.caller(), self.callee.identity.as_ref()))
        };
        Client::clone(self.client.get_or_init(make))
    }

    /// Returns the call with the authority of its writes.
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            gvk: self.gvk().clone(),
            key: self.key.clone(),
            handler: Arc::clone(&self.callee.name),
            run: self.run,
            gates: Arc::clone(&self.callee.gates),
            object: self.object.as_ref().or(self.deleted.as_ref()).cloned(),
            term: self.term.clone(),
        }
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

/// The rest of the middleware chain, with the handler at its end.
#[must_use = "a call that is not passed on does not reach its handler"]
pub struct Next {
    callee: Arc<Callee>,
    at: usize,
}

impl Next {
    /// Passes the call on to the next middleware, or to the handler.
    ///
    /// # Errors
    ///
    /// The error of the handler, or of a middleware between this one and the handler.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the handler's call at its current await.
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

/// Middleware, with its type erased.
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
