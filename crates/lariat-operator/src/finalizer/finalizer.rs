//! A finalizer: its name, and which objects have it.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{CachedObject, Change, View};
use lariat_controller::Predicate;

/// A finalizer: a name on an object that keeps it, once it is deleted, until cleanup is done.
///
/// It is given to a reconciler by [`Reconciler::finalizer`](crate::Reconciler::finalizer).
pub struct Finalizer<K> {
    pub(super) name: Arc<str>,
    wanted: Option<Arc<Wanted<K>>>,
}

type Wanted<K> = dyn Fn(&K) -> bool + Send + Sync;

impl<K: View> Finalizer<K> {
    /// Makes a finalizer of a name as `domain/what`: `demo.dev/cleanup`. It is checked when the reconciler is
    /// registered.
    ///
    /// The name stays on objects that outlive the program. Renaming a finalizer leaves the old name on them, and nobody
    /// who removes it: [`remove_from_all`](Self::remove_from_all) the old one.
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
        Self {
            wanted: Some(wanted),
            ..self
        }
    }

    /// Returns its name.
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

    /// Accepts the changes by which an object begins to go, or is going when it comes into sight.
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
