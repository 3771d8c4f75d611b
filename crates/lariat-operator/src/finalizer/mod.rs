//! Finalizers: cleanup before an object goes.

mod cleaned;
mod error;
mod held;
mod name;
mod strip;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use lariat_cache::{CachedObject, Change, View};
use lariat_controller::{HandlerResult, Predicate};

use crate::rbac::Rule;
use crate::reconciler::{Callback, Reconcile, Reconciler};
pub use error::{FinalizerNameError, StripError};
pub(crate) use held::Held;
pub use strip::Stripped;

/// A finalizer: a name on an object that keeps it, once it is deleted, until cleanup is done.
///
/// It is given to a reconciler by [`Reconciler::finalizer`].
pub struct Finalizer<K> {
    name: Arc<str>,
    wanted: Option<Arc<Wanted<K>>>,
}

type Wanted<K> = dyn Fn(&K) -> bool + Send + Sync;

impl<K: View> Finalizer<K> {
    /// Makes a finalizer of a name as `domain/what`: `demo.dev/cleanup`. It is checked when the reconciler is
    /// registered.
    ///
    /// The name stays on objects that outlive the program. Renaming a finalizer leaves the old name on them, and nobody
    /// who removes it: [`strip`](Self::strip) the old one.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let name = name.into();
        Self { name, wanted: None }
    }

    /// Adds the finalizer only to objects a function wants (default: to all).
    ///
    /// An object the function no longer wants keeps the finalizer: what has to be cleaned up was made while it was
    /// wanted. It is cleaned up like the others.
    #[must_use]
    pub fn when(self, wanted: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        let wanted: Arc<Wanted<K>> = Arc::new(wanted);
        let wanted = Some(wanted);
        Self { wanted, ..self }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn wants(&self, object: &K) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted(object))
    }

    fn is_on(&self, object: &CachedObject) -> bool {
        object.finalizers().any(|name| *name == *self.name)
    }

    /// Wants what tells that an object begins to go, or is going when it comes into sight.
    pub(crate) fn told(&self) -> Predicate {
        let finalizer = self.clone();
        Predicate::new(move |change| match change {
            Change::Updated { old, new } => {
                let begins = !old.is_deleting() || old.uid() != new.uid();
                begins && new.is_deleting() && finalizer.is_on(new)
            }
            Change::Added { object, .. } => object.is_deleting() && finalizer.is_on(object),
            _ => false,
        })
    }
}

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
    /// dropped by a [timeout](lariat_controller::HandlerOptions::timeout). It is told of every deletion, whatever
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
        let rule = Rule::finalizer(self.kind());
        self.setup.finalizer = Some(Held::new(finalizer, Callback::new(cleanup)));
        self.needs(rule)
    }
}

impl<K> Clone for Finalizer<K> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            wanted: self.wanted.clone(),
        }
    }
}

impl<K> fmt::Debug for Finalizer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finalizer")
            .field("name", &self.name)
            .field("selects", &self.wanted.is_some())
            .finish()
    }
}
