//! The method of [`Reconciler`] that adds a finalizer.

use std::future::Future;

use lariat_cache::View;
use lariat_controller::HandlerResult;

use super::builder::Reconciler;
use crate::finalizer::{Finalizer, HeldFinalizer};
use crate::needs::Rule;
use crate::reconcile::{Callback, Reconcile};

impl<K: View> Reconciler<K> {
    /// Adds a finalizer before objects are reconciled, and cleans up on deletion.
    ///
    /// **Calls.** For an object that is being deleted and has the finalizer, `cleanup` is called instead of the
    /// reconciler, whatever predicates [`options`](Self::options) have. If it returns
    /// [`Outcome::done`](lariat_controller::Outcome::done), the finalizer is removed. If it returns a
    /// [delay](lariat_controller::Outcome::requeue_after), it is called again after the delay. A failure is retried
    /// like any other. After a final failure (a terminal error, or exhausted retries) it is called again after the
    /// [period](Self::requeue_after) of the reconciler, or after ten minutes if there is none. An object that is being
    /// deleted without the finalizer is ignored.
    ///
    /// **Delivery: at least once.** After a success, the cleanup is not repeated for the same deletion in this process.
    /// If the process ends before the finalizer is removed, the next one repeats it, so it must be idempotent. It must
    /// also tolerate being dropped by a [timeout](lariat_controller::HandlerOptions::timeout). An object that is
    /// restored from a backup has the finalizer, and is cleaned up again when it is deleted again.
    ///
    /// **Writes.** After the finalizer is added, the same call continues with the object in the API server's answer.
    /// Finalizers of others are kept: the patch is valid only for the state it was computed from, and after a conflict
    /// it is computed from the newest one.
    ///
    /// **Decode errors.** An object that does not decode as `K` cannot be cleaned up. It is not deleted, and the error,
    /// which names it, is logged, until the object is repaired or its finalizer is removed by hand.
    ///
    /// A second finalizer replaces the first. For two finalizers, register two reconcilers with one finalizer each. The
    /// same name twice is refused, because the first reconciler to finish would let the object be deleted.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use lariat::operator::Finalizer;
    /// use lariat::{Operator, Outcome, Reconcile, SharedControllerFactory};
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
        self.setup.finalizer = Some(HeldFinalizer::new(finalizer, Callback::new(cleanup)));
        self.needs(rule)
    }
}
