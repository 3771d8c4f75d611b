//! Finalizers of reconcilers.

use std::future::Future;

use lariat_cache::View;
use lariat_controller::HandlerResult;

use super::builder::Reconciler;
use crate::finalizer::{Finalizer, Held};
use crate::needs::Rule;
use crate::reconcile::{Callback, Reconcile};

impl<K: View> Reconciler<K> {
    /// Adds a finalizer before objects are reconciled, and cleans up on deletion.
    ///
    /// For an object that is being deleted and has the finalizer, `cleanup` is called instead of the reconciler. If it
    /// returns [`Outcome::done`](lariat_controller::Outcome::done), the finalizer is removed. If it returns a
    /// [delay](lariat_controller::Outcome::requeue_after), it is called again after the delay. A failure is retried
    /// like any other. After a final failure (a terminal error, or exhausted retries) it is called again after the
    /// [period](Self::requeue_after) of the reconciler, or after ten minutes if there is none. An object that is being
    /// deleted and does not have the finalizer is ignored.
    ///
    /// Cleanup is done at least once. After a success it is not repeated for the same deletion in this process, but the
    /// next process repeats it if this one ended before the finalizer was removed. So it must be idempotent. It must
    /// also tolerate being dropped by a [timeout](lariat_controller::HandlerOptions::timeout). It is called for every
    /// deletion, whatever predicates [`options`](Self::options) have. An object that a restored backup brings back has
    /// the finalizer, and is cleaned up again when it is deleted again.
    ///
    /// After the finalizer is added, the same call goes on with the object from the API server's answer. Finalizers of
    /// others are never overwritten: the patch applies only to the state it was computed from, and is computed again
    /// from the newest.
    ///
    /// An object that does not fit `K` cannot be cleaned up. It is not removed, and the error, which names it, is
    /// logged. It is removed once the object is repaired, or its finalizer is removed by hand.
    ///
    /// A second finalizer replaces the first. For two finalizers, register two reconcilers with a finalizer each; the
    /// same name twice is refused, because the first to finish would let the object be removed.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use lariat_controller::{Outcome, SharedControllerFactory};
    /// use lariat_operator::{Finalizer, Operator, Reconcile};
    ///
    /// # fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// let buckets = Finalizer::new("demo.dev/bucket").when(|map: &ConfigMap| map.data.is_some());
    /// Operator::new("bucketeer", &factory)
    ///     .reconciler("buckets", &factory.for_object::<ConfigMap>())
    ///     .finalizer(buckets, |cx: Reconcile<ConfigMap>| async move {
    ///         println!("removing the bucket of {}", cx.key());
    ///         Ok(Outcome::done())
    ///     })
    ///     .register(|cx: Reconcile<ConfigMap>| async move {
    ///         println!("making the bucket of {}", cx.key());
    ///         Ok(Outcome::done())
    ///     })?;
    /// # Ok(()) }
    /// ```
    pub fn finalizer<F, Fut>(mut self, finalizer: Finalizer<K>, cleanup: F) -> Self
    where
        F: Fn(Reconcile<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        let rule = Rule::finalizer(&self.kind);
        self.setup.finalizer = Some(Held::new(finalizer, Callback::new(cleanup)));
        self.needs(rule)
    }
}
