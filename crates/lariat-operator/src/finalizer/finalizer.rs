//! A finalizer: its name and the objects that get it.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{CachedObject, Change, View};
use lariat_controller::Predicate;

/// A finalizer, which keeps a deleted object until its cleanup is done.
///
/// [`Reconciler::finalizer`](crate::Reconciler::finalizer) adds it to a reconciler.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use lariat_operator::Finalizer;
///
/// let buckets = Finalizer::new("demo.dev/bucket").when(|map: &ConfigMap| map.data.is_some());
/// assert_eq!(buckets.name(), "demo.dev/bucket");
/// ```
pub struct Finalizer<K> {
    pub(super) name: Arc<str>,
    wanted: Option<Arc<Wanted<K>>>,
}

type Wanted<K> = dyn Fn(&K) -> bool + Send + Sync;

impl<K: View> Finalizer<K> {
    /// Creates a finalizer with a name such as `demo.dev/cleanup`.
    ///
    /// The name is checked when the reconciler is registered. It stays on objects longer than the program runs. After
    /// renaming a finalizer, [remove](Self::remove_from_all) the old name: no reconciler does.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let name = name.into();
        Self { name, wanted: None }
    }

    /// Adds the finalizer only to the objects a predicate selects (default: all).
    ///
    /// An object that is no longer selected keeps the finalizer and is cleaned up like the others: what has to be
    /// cleaned up was created while it was selected.
    #[must_use]
    pub fn when(self, wanted: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        let wanted: Arc<Wanted<K>> = Arc::new(wanted);
        Self {
            wanted: Some(wanted),
            ..self
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn wants(&self, object: &K) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted(object))
    }

    pub(super) fn is_on(&self, object: &CachedObject) -> bool {
        object.finalizers().any(|name| *name == *self.name)
    }

    /// Accepts the changes by which the deletion of an object begins, or in which it is seen first.
    pub(super) fn needed(&self) -> Predicate {
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
