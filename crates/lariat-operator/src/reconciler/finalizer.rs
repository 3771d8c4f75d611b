//! A reconciler with a finalizer.

use std::future::Future;

use lariat_cache::View;
use lariat_controller::HandlerResult;

use super::builder::Reconciler;
use crate::finalizer::{Finalizer, Held};
use crate::needs::Rule;
use crate::reconcile::{Callback, Reconcile};

impl<K: View> Reconciler<K> {
    /// Puts a finalizer on objects before they are reconciled, and cleans up before they go.
    ///
    /// An object that is being deleted and has the finalizer is given to `cleanup` instead of the reconciler. When that
    /// returns [`Outcome::done`](lariat_controller::Outcome::done), the finalizer is removed; with a
    /// [delay](lariat_controller::Outcome::requeue_after) the cleanup is not finished, and is called again after it. A
    /// failure is tried again like any other; one that is terminal, or whose retries are used up, after the
    /// [period](Self::requeue_after) of the reconciler, or ten minutes if it has none. An object that is being deleted
    /// and does not have the finalizer is left alone.
    ///
    /// Cleanup happens at least once: not again for the same deletion in this process after it was done, but again in the
    /// next process if this one ended before the finalizer was removed. It must bear that, as it must bear being
    /// dropped by a [timeout](lariat_controller::HandlerOptions::timeout). It is called for every deletion, whatever
    /// [`options`](Self::options) say of changes. An object that a restored backup brought back to life keeps the
    /// finalizer, and is cleaned up again when it is deleted again.
    ///
    /// Reconciling goes on in the same call with the object as the API server answered it. Finalizers of others are
    /// never overwritten: only the state they were read from is changed, and that is tried again on the newest.
    ///
    /// An object that does not fit `K` cannot be cleaned up. It stays, and the error, which names it, is logged; it
    /// goes once it is mended, or once somebody removes the finalizer.
    ///
    /// A second finalizer replaces the first; for two, register two reconcilers, each with a name of its own: two with
    /// one name are refused, because the first to be done would let the object go.
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
