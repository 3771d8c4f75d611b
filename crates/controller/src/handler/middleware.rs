//! Middleware, which wraps the calls of handlers.

use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time;

use super::call::{AnyMiddleware, Call, HandlerResult, Next};
use super::error::HandlerError;

/// Wraps calls of handlers.
///
/// Middleware can inspect a call, act before and after it, replace its result, or not make the call at all. It applies
/// to one handler ([`HandlerOptions::wrap`](crate::HandlerOptions::wrap)), or to all handlers of a kind or a factory
/// ([`ControllerOptions::handlers`](crate::ControllerOptions::handlers)).
///
/// The middleware of the factory is outermost, then that of the kind, then the handler's own, each in the order in
/// which it was added. The timeout is innermost. A panic in middleware counts as a panic of the handler.
///
/// Every async function and closure from [`Call`] and [`Next`] to [`HandlerResult`] is middleware. kooper calls it a
/// decorator.
///
/// ```
/// use lariat::controller::{Call, Next};
/// use lariat::{HandlerOptions, HandlerResult};
///
/// async fn log(call: Call, next: Next) -> HandlerResult {
///     println!("calling {} for {}", call.handler(), call.key());
///     let result = next.run(call).await;
///     println!("ended {}", if result.is_ok() { "well" } else { "with an error" });
///     result
/// }
///
/// let options = HandlerOptions::default().wrap(log);
/// # let _ = options;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not middleware",
    note = "middleware is `async fn(Call, Next) -> HandlerResult`, or a type that implements `Middleware`"
)]
pub trait Middleware: Send + Sync + 'static {
    /// Handles a call, usually by passing it on to `next`.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped at its current await as that of a [handler](crate::Handler::handle), except for the
    /// timeout, which is inside.
    fn handle(&self, call: Call, next: Next) -> impl Future<Output = HandlerResult> + Send;
}

impl<F, Fut> Middleware for F
where
    F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult> + Send,
{
    fn handle(&self, call: Call, next: Next) -> impl Future<Output = HandlerResult> + Send {
        self(call, next)
    }
}

impl<M: Middleware> AnyMiddleware for M {
    fn handle(&self, call: Call, next: Next) -> BoxFuture<'_, HandlerResult> {
        Box::pin(async move { Middleware::handle(self, call, next).await })
    }
}

/// Drops calls that exceed a time limit.
///
/// A call is dropped at its next await, which counts as a failure and is retried. Zero means no limit.
/// [`HandlerOptions::timeout`](crate::HandlerOptions::timeout) wraps a handler in this middleware; add it yourself to
/// limit other middleware as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout {
    limit: Duration,
}

impl Timeout {
    /// Creates a limit for calls; zero means no limit.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self { limit }
    }
}

impl Middleware for Timeout {
    async fn handle(&self, call: Call, next: Next) -> HandlerResult {
        let Self { limit } = *self;
        if limit.is_zero() {
            return next.run(call).await;
        }
        // The future of `next` is dropped with the handler's at its current await. A handler that blocks its thread is
        // not interrupted.
        match time::timeout(limit, next.run(call)).await {
            Ok(result) => result,
            Err(_) => Err(HandlerError::timed_out(limit)),
        }
    }
}
