//! The functions of the user.

use std::future::Future;

use futures::FutureExt;
use futures::future::BoxFuture;
use lariat_controller::HandlerResult;

use super::reconcile::Reconcile;

/// A function of the user, with its type erased.
pub(crate) struct Callback<K>(Box<Function<K>>);

type Function<K> = dyn Fn(Reconcile<K>) -> BoxFuture<'static, HandlerResult> + Send + Sync;

impl<K> Callback<K> {
    pub(crate) fn new<F, Fut>(function: F) -> Self
    where
        F: Fn(Reconcile<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        Self(Box::new(move |cx| function(cx).boxed()))
    }

    pub(crate) async fn call(&self, cx: Reconcile<K>) -> HandlerResult {
        (self.0)(cx).await
    }
}
