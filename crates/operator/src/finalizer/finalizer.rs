//! A finalizer: its name, and the objects to which it is added.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{CachedObject, Change, View};
use lariat_controller::Predicate;

/// A finalizer, which delays the deletion of an object until its cleanup is done.
///
/// [`Reconciler::finalizer`](crate::Reconciler::finalizer) adds it to a reconciler, with the function that cleans up.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use lariat::operator::Finalizer;
///
/// let buckets = Finalizer::new("demo.dev/bucket").when(|map: &ConfigMap| map.data.is_some());
/// assert_eq!(buckets.name(), "demo.dev/bucket");
/// ```
pub struct Finalizer<K> {
    pub(super) name: Arc<str>,
    /// The predicate of [`when`](Self::when); all objects if there is none.
    wanted: Option<Arc<Wanted<K>>>,
}

/// Selects the objects that get the finalizer.
type Wanted<K> = dyn Fn(&K) -> bool + Send + Sync;

impl<K: View> Finalizer<K> {
    /// Creates a finalizer with a name such as `demo.dev/cleanup`.
    ///
    /// The name is checked when the reconciler is registered. It is stored in the objects, so it outlives the program.
    /// If you rename a finalizer, [remove](Self::remove_from_all) the old name: no reconciler does it.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let name = name.into();
        Self { name, wanted: None }
    }

    /// Adds the finalizer only to objects that a predicate selects (default: all).
    ///
    /// An object that is no longer selected keeps the finalizer, and is cleaned up like the others: the resources to
    /// clean up were created while it was selected.
    #[must_use]
    pub fn when(self, wanted: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        let wanted: Arc<Wanted<K>> = Arc::new(wanted);
        Self {
            wanted: Some(wanted),
            ..self
        }
    }

    /// Returns the name of the finalizer.
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

    /// Accepts the changes that a reconciler with the finalizer must not miss.
    ///
    /// These are the first change with a deletion timestamp, the first sight of an object that has one, and the loss of
    /// the finalizer by another client or a restored backup. The reconciler's own predicates must not filter them out.
    pub(super) fn needed(&self) -> Predicate {
        let finalizer = self.clone();
        Predicate::new(move |change| match change {
            Change::Updated { old, new } => {
                // A changed uid means that the deletion of the old object was missed, and this is the first sight of
                // the new one.
                let begins = !old.is_deleting() || old.uid() != new.uid();
                let is_lost = !new.is_deleting() && finalizer.is_on(old) && !finalizer.is_on(new);
                is_lost || begins && new.is_deleting() && finalizer.is_on(new)
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
