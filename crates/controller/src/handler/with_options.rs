//! A handler with options of its own.

use std::future::Future;

use super::call::HandlerResult;
use super::context::Context;
use super::handler::Handler;
use super::options::HandlerOptions;

/// A handler with options of its own; created by [`HandlerOptions::handler`].
#[derive(Debug)]
#[must_use = "a handler does nothing until it is registered"]
pub struct WithOptions<H> {
    handler: H,
    options: HandlerOptions,
}

impl HandlerOptions {
    /// Gives a handler these options.
    ///
    /// The result is registered like any other handler. If `handler` has [options](Handler::options) of its own, these
    /// options take precedence over them.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::controller::RegisterError;
    /// use lariat::{Context, HandlerOptions, Outcome, SharedController};
    ///
    /// # fn example(pods: &SharedController<Pod>) -> Result<(), RegisterError> {
    /// let options = HandlerOptions::default().timeout(Duration::from_secs(30)).max_retries(5);
    /// pods.register_handler("log", options.handler(|cx: Context<Pod>| async move {
    ///     println!("{}", cx.key());
    ///     Ok(Outcome::done())
    /// }))?;
    /// # Ok(()) }
    /// ```
    pub fn handler<H>(self, handler: H) -> WithOptions<H> {
        WithOptions {
            handler,
            options: self,
        }
    }
}

impl<K, H: Handler<K>> Handler<K> for WithOptions<H> {
    fn handle(&self, cx: Context<K>) -> impl Future<Output = HandlerResult> + Send {
        self.handler.handle(cx)
    }

    fn options(&self) -> HandlerOptions {
        self.options.clone().or(&self.handler.options())
    }
}
