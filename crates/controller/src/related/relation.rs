//! Maps objects of one kind to keys of another.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{CachedObject, Change, Metadata, Store, View};
use lariat_core::{Gvk, ObjectKey, Scope};

use crate::handler::Predicate;

/// Maps an object of one kind to keys of another.
///
/// [`watch_related`](crate::SharedController::watch_related) takes a relation. The ready-made relations read metadata
/// only; [`map`](Self::map) reads the object as `V`. A relation is applied where changes are published, so it should be
/// fast; with [`Metadata`] as `V`, nothing is decoded. controller-runtime calls this `handler.MapFunc`.
///
/// ```
/// use lariat::Relation;
///
/// let owned = Relation::controllers();
/// let labelled = Relation::label("example.com/app").to("deploy");
/// # let _ = (owned, labelled);
/// ```
#[must_use = "a relation does nothing until a controller watches it"]
pub struct Relation<V> {
    pub(super) map: Map<V>,
    pub(super) to: Option<Arc<str>>,
    only: Option<Predicate>,
}

pub(super) enum Map<V> {
    Owners { controllers_only: bool },
    Custom(Arc<CustomMap<V>>),
}

type CustomMap<V> = dyn Fn(&V) -> Vec<ObjectKey> + Send + Sync;

/// The kind whose keys a relation returns.
pub(super) struct Target<'a> {
    pub(super) gvk: &'a Gvk,
    /// The scope of the kind, if it is known. While it is not, the kind counts as namespaced.
    pub(super) scope: Option<Scope>,
}

impl Relation<Metadata> {
    /// Maps an object to all its owners, of any version of their kind.
    pub fn owners() -> Self {
        Self::of(Map::Owners {
            controllers_only: false,
        })
    }

    /// Maps an object to its controlling owner, like controller-runtime's `Owns`.
    ///
    /// The controlling owner is the owner reference with `controller: true`.
    pub fn controllers() -> Self {
        Self::of(Map::Owners {
            controllers_only: true,
        })
    }

    /// Maps an object to the name that a label has, in the object's namespace.
    ///
    /// An object without the label, or with an empty one, maps to nothing.
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

    /// Maps an object to the namespace and the name that two labels have.
    ///
    /// An object without one of the labels, or with an empty name, maps to nothing.
    pub fn labels(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let (namespace, name) = (namespace.into(), name.into());
        Self::map(move |object: &Metadata| {
            let labels = object.labels();
            let key = labels
                .get(&namespace)
                .zip(labels.get(&name))
                .filter(|(_, name)| !name.is_empty());
            key.map(|(namespace, name)| ObjectKey::namespaced(namespace, name))
                .into_iter()
                .collect()
        })
    }

    /// Maps an object to the key in one of its annotations.
    ///
    /// The value is `namespace/name`, or `name` if the other kind has no namespaces. Use it for owners in other
    /// namespaces: owner references cannot name them, and labels cannot hold a slash. An object without the annotation,
    /// or with a value that is no key, maps to nothing. It parses the JSON of the object's metadata, which costs more
    /// than a label.
    ///
    /// ```
    /// use lariat::Relation;
    ///
    /// let owner = Relation::annotation("example.com/owner");
    /// # let _ = owner;
    /// ```
    pub fn annotation(name: impl Into<String>) -> Self {
        let annotation = name.into();
        Self::map(move |object: &Metadata| {
            let annotations = object.annotations();
            let key = annotations.get(&annotation).map(|text| text.parse());
            key.and_then(Result::ok).into_iter().collect()
        })
    }
}

impl<V: View> Relation<V> {
    fn of(map: Map<V>) -> Self {
        Self {
            map,
            to: None,
            only: None,
        }
    }

    /// Maps an object with a function.
    ///
    /// If `V` is more than [`Metadata`], the content of the other kind stays cached as long as the relation exists, at
    /// least in compressed form, even if its storage or its memory budget says otherwise
    /// ([`Informer::hold_content`](lariat_cache::Informer::hold_content)). Objects that a content filter leaves out map
    /// to nothing. Content that was not cached when the relation began is read first; each object is mapped once it has
    /// arrived.
    ///
    /// The function is called for the old and the new state. It is called under locks, so it must not use controllers;
    /// it may read the caches of other kinds. If it panics, the panic is logged and the object maps to nothing.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::{ObjectKey, Relation};
    ///
    /// let node = Relation::map(|pod: &Pod| {
    ///     let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    ///     node.map(ObjectKey::cluster).into_iter().collect()
    /// });
    /// # let _ = node;
    /// ```
    pub fn map(map: impl Fn(&V) -> Vec<ObjectKey> + Send + Sync + 'static) -> Self {
        Self::of(Map::Custom(Arc::new(map)))
    }

    /// Enqueues keys for the handler of this name only (default: for all handlers).
    ///
    /// While no handler has this name, nothing is enqueued.
    pub fn to(self, handler: impl Into<Arc<str>>) -> Self {
        let to = Some(handler.into());
        Self { to, ..self }
    }

    /// Enqueues keys only for changes that a predicate selects (default: for all).
    ///
    /// The predicate is evaluated before the related object is mapped, with its old and its new state. It must select
    /// every change that may matter. Objects of the initial list are additions, which the ready-made predicates select.
    /// After a second call, both predicates have to select a change. This is controller-runtime's
    /// `builder.WithPredicates`.
    ///
    /// ```
    /// use lariat::{Predicate, Relation};
    ///
    /// let spec_or_labels = Predicate::generation_changed().or(Predicate::labels_changed());
    /// let owned = Relation::controllers().only(spec_or_labels);
    /// # let _ = owned;
    /// ```
    pub fn only(self, predicate: Predicate) -> Self {
        let only = Some(Predicate::both(self.only, predicate));
        Self { only, ..self }
    }

    /// Returns whether keys are enqueued for a change.
    pub(super) fn wants(&self, change: &Change) -> bool {
        // A restored state may have the generation and the labels of another one.
        change.is_rewound() || self.only.as_ref().is_none_or(|only| only.wants(change))
    }

    /// Returns whether the keys come from owner references.
    ///
    /// An owner reference does not tell whether the owner has a namespace, so such keys need the scope of the owner's
    /// kind.
    pub(super) fn names_owners(&self) -> bool {
        matches!(self.map, Map::Owners { .. })
    }

    /// Returns the keys of `target` that an object maps to.
    ///
    /// `store` and `of` are the store and the kind of the object.
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
                // The version is not compared: all versions of a kind are the same objects.
                && group(owner.api_version()) == self.gvk.group()
                && (owner.is_controller() || !controllers_only)
        };
        // An owner is in the object's namespace, unless one of them is cluster-scoped.
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
            .field("only", &self.only)
            .finish()
    }
}
