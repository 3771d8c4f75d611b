//! The handler trait.

use std::future::Future;
use std::marker::PhantomData;

use futures::future::BoxFuture;
use lariat_cache::View;

use super::call::{AnyHandler, Call, HandlerResult};
use super::context::Context;
use super::options::HandlerOptions;

/// A function that is called for the keys of a kind, with objects read as `K`.
///
/// Every async function and closure from [`Context<K>`] to [`HandlerResult`] is a handler. Implement the trait for a
/// type that has state. [`HandlerOptions::handler`] gives a handler its own options.
///
/// After a change that its predicates let through, a handler is called at least once with a state at least as new, as
/// soon as the factory runs and the kind can be read. It is not called twice at the same time for one key in a process.
/// Several changes may lead to one call, so a handler should compare the present state with the desired state, rather
/// than react to events. It may also be called although nothing changed.
///
/// ```
/// use lariat::{Context, Handler, HandlerResult, Metadata, Outcome};
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
    /// Handles a key. Errors are retried; see [`HandlerError`](crate::HandlerError).
    ///
    /// # Cancel safety
    ///
    /// The future is dropped at its current await when the handler's timeout or the grace period of a stop is over,
    /// when the lease is lost, and when the key moves to another member of a ring. The key is processed again later.
    fn handle(&self, cx: Context<K>) -> impl Future<Output = HandlerResult> + Send;

    /// Returns the handler's own options (default: none are set).
    ///
    /// It is called when the handler is registered. A handler of [all kinds](crate::AllKinds) is registered for each
    /// kind.
    fn options(&self) -> HandlerOptions {
        HandlerOptions::default()
    }
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

/// A handler with its view type.
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
        // `handle` is called inside the future, so that a panic before its first await is caught too.
        Box::pin(async move { self.handler.handle(Context::new(call)).await })
    }
}
