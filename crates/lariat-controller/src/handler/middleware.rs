//! Middleware: what is wrapped around handlers.

use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time;
use tracing::Instrument;

use super::call::{AnyMiddleware, Call, HandlerResult, Next};
use super::error::HandlerError;

/// Code that is wrapped around calls of handlers: kooper calls it a decorator.
///
/// It can look at the call, do something before and after, change what the handler said, or not call it
/// at all. It is given to one handler ([`HandlerOptions::wrap`](crate::HandlerOptions::wrap)), to all of a
/// kind, or to all of a factory ([`ControllerOptions::handlers`](crate::ControllerOptions::handlers)). The
/// factory's is outermost, then the kind's, then the handler's own, each in the order in which it was given;
/// the timeout is innermost. A panic in it counts as the handler's.
///
/// Every async function and closure from a [`Call`] and [`Next`] to [`HandlerResult`] is middleware.
///
/// ```
/// use lariat_controller::{Call, HandlerOptions, HandlerResult, Next};
///
/// async fn quiet_at_night(call: Call, next: Next) -> HandlerResult {
///     println!("about to call {} for {}", call.handler(), call.key());
///     let result = next.run(call).await;
///     println!("it went {}", if result.is_ok() { "well" } else { "wrong" });
///     result
/// }
///
/// let options = HandlerOptions::default().wrap(quiet_at_night);
/// # let _ = options;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not middleware",
    note = "middleware is `async fn(Call, Next) -> HandlerResult`, or a type that implements `Middleware`"
)]
pub trait Middleware: Send + Sync + 'static {
    /// Handles a call, usually by passing it to `next`.
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

/// Drops calls that take longer than this at their next await; that counts as a failure.
///
/// [`HandlerOptions::timeout`](crate::HandlerOptions::timeout) wraps a handler in it. Zero means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout {
    limit: Duration,
}

impl Timeout {
    /// Makes a limit for calls; zero means none.
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
        match time::timeout(limit, next.run(call)).await {
            Ok(result) => result,
            Err(_) => Err(HandlerError::timed_out(limit)),
        }
    }
}

/// Puts each call into a `tracing` span that names kind, key, handler, run and attempt, so that everything
/// the handler logs says what it was about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tracing;

impl Middleware for Tracing {
    async fn handle(&self, call: Call, next: Next) -> HandlerResult {
        let span = tracing::info_span!(
            "handle",
            kind = %call.gvk(),
            key = %call.key(),
            handler = call.handler(),
            run = call.run(),
            attempt = call.attempt(),
        );
        next.run(call).instrument(span).await
    }
}
