//! Which keys an object of another kind has to do with.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{CachedObject, Metadata, Store, View};
use lariat_core::{Gvk, ObjectKey, Scope};

/// Says which keys of one kind an object of another has to do with.
///
/// The ready-made ones look at metadata only. [`map`](Self::map) reads the object as `V`; it is called where
/// changes are published, so it should be quick, and a view as [`Metadata`] spares it the decoding.
#[must_use = "a relation does nothing until a controller watches it"]
pub struct Relation<V> {
    pub(super) map: Map<V>,
    pub(super) to: Option<Arc<str>>,
}

pub(super) enum Map<V> {
    Owners { controllers_only: bool },
    Custom(Arc<CustomMap<V>>),
}

type CustomMap<V> = dyn Fn(&V) -> Vec<ObjectKey> + Send + Sync;

/// The kind whose keys are asked for.
pub(super) struct Target<'a> {
    pub(super) gvk: &'a Gvk,
    /// Whether it has namespaces, if that is known; otherwise it is taken to have them.
    pub(super) scope: Option<Scope>,
}

impl Relation<Metadata> {
    /// An object has to do with those it names as owners, of whatever version.
    pub fn owners() -> Self {
        Self::of(Map::Owners {
            controllers_only: false,
        })
    }

    /// An object has to do with the owner that controls it; controller-runtime's `Owns`.
    pub fn controllers() -> Self {
        Self::of(Map::Owners {
            controllers_only: true,
        })
    }

    /// An object has to do with the one of its namespace that a label names.
    pub fn label(name: impl Into<String>) -> Self {
        let label = name.into();
        Self::map(move |object: &Metadata| {
            let named = object.labels().get(&label).filter(|name| !name.is_empty());
            let namespace = object.key().namespace().unwrap_or_default();
            named
                .map(|name| ObjectKey::namespaced(namespace, name))
                .into_iter()
                .collect()
        })
    }

    /// An object has to do with the one whose namespace and name are in two labels.
    pub fn labels(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let (namespace, name) = (namespace.into(), name.into());
        Self::map(move |object: &Metadata| {
            let labels = object.labels();
            let key = labels.get(&namespace).zip(labels.get(&name));
            let key = key.filter(|(_, name)| !name.is_empty());
            key.map(|(namespace, name)| ObjectKey::namespaced(namespace, name))
                .into_iter()
                .collect()
        })
    }
}

impl<V: View> Relation<V> {
    fn of(map: Map<V>) -> Self {
        Self { map, to: None }
    }

    /// An object has to do with whatever keys a function returns.
    ///
    /// The function is called for the old state and for the new one, under locks, so it must not use controllers;
    /// looking into another kind's cache is fine. One that panics is reported, and counts as none.
    pub fn map(map: impl Fn(&V) -> Vec<ObjectKey> + Send + Sync + 'static) -> Self {
        Self::of(Map::Custom(Arc::new(map)))
    }

    /// Enqueues for one handler only (default: for all). While there is none of this name, nothing is enqueued.
    pub fn to(self, handler: impl Into<Arc<str>>) -> Self {
        let to = Some(handler.into());
        Self { to, ..self }
    }

    /// Returns whether its keys are those of owners, whose references do not say whether they have a namespace.
    pub(super) fn names_owners(&self) -> bool {
        matches!(self.map, Map::Owners { .. })
    }

    /// Returns the keys of the target an object of a store and a kind has to do with.
    pub(super) fn keys(
        &self,
        object: &Arc<CachedObject>,
        store: &Store,
        of: &Gvk,
        target: &Target<'_>,
    ) -> Result<Vec<ObjectKey>, lariat_cache::DecodeError> {
        match &self.map {
            Map::Owners { controllers_only } => Ok(target.owners(object, *controllers_only)),
            Map::Custom(map) => Ok(map(&*store.read::<V>(object, of)?)),
        }
    }
}

impl Target<'_> {
    fn owners(&self, object: &CachedObject, controllers_only: bool) -> Vec<ObjectKey> {
        let is_one = |owner: &&lariat_core::OwnerRef| {
            owner.kind() == self.gvk.kind()
                && group(owner.api_version()) == self.gvk.group()
                && (owner.is_controller() || !controllers_only)
        };
        let key = |owner: &lariat_core::OwnerRef| match (self.scope, object.key().namespace()) {
            (Some(Scope::Cluster), _) | (_, None) => ObjectKey::cluster(owner.name()),
            (_, Some(namespace)) => ObjectKey::namespaced(namespace, owner.name()),
        };
        object.owners().iter().filter(is_one).map(key).collect()
    }
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

impl<V> fmt::Debug for Relation<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let map = match self.map {
            Map::Owners {
                controllers_only: true,
            } => "controllers",
            Map::Owners { .. } => "owners",
            Map::Custom(_) => "map",
        };
        f.debug_struct("Relation")
            .field("map", &map)
            .field("to", &self.to)
            .finish()
    }
}
