//! Queries: which objects of a cache to return, and through which index they are found.

use std::sync::Arc;

use lariat_core::{LabelSelector, ObjectKey, Uid};

use super::index::{Indexes, LabelIndex};
use super::object::CachedObject;
use super::objects::{CHUNK, ListState};
use super::tree::{Snapshot, Tree};
use super::writer::Kept;

/// A query for cached objects; all of its conditions must match.
///
/// ```
/// use lariat::Query;
///
/// let query = Query::in_namespace("shop").labels("app in (web, api), !canary".parse()?);
/// # let _ = query; Ok::<(), lariat::core::SelectorError>(())
/// ```
///
/// The result is in key order and of one moment. Only matching objects are decoded.
///
/// Namespaces, owners, and labels with given values (`app=web`, `app in (web, api)`) are looked up in an index, which
/// is created on first use. The first eight labels that need one have an index.
#[derive(Debug, Clone, Default)]
#[must_use = "a query does nothing until a cache is asked"]
pub struct Query {
    pub(super) namespace: Option<String>,
    pub(super) labels: LabelSelector,
    pub(super) owner: Option<Uid>,
}

impl Query {
    /// Matches all objects.
    pub fn all() -> Self {
        Self::default()
    }

    /// Matches the objects of a namespace.
    pub fn in_namespace(namespace: &str) -> Self {
        Self::all().namespace(namespace)
    }

    /// Matches the objects that have an owner, whether it is the controller or not.
    ///
    /// ```
    /// use lariat::{Cache, Metadata, Query};
    ///
    /// fn children(pods: &Cache<Metadata>, owner: &Metadata) -> usize {
    ///     pods.count(&Query::owned_by(owner.uid()))
    /// }
    /// # let _ = children;
    /// ```
    pub fn owned_by(uid: &Uid) -> Self {
        Self::all().owner(uid)
    }

    /// Restricts the query to a namespace.
    pub fn namespace(self, namespace: &str) -> Self {
        let namespace = Some(namespace.to_owned());
        Self { namespace, ..self }
    }

    /// Restricts the query to objects with matching labels.
    pub fn labels(self, labels: LabelSelector) -> Self {
        Self { labels, ..self }
    }

    /// Restricts the query to objects that have an owner.
    pub fn owner(self, uid: &Uid) -> Self {
        let owner = Some(uid.clone());
        Self { owner, ..self }
    }

    /// Returns the namespace, if the query has one.
    pub(crate) fn wanted_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns the label selector.
    pub(crate) fn wanted_labels(&self) -> &LabelSelector {
        &self.labels
    }

    /// Returns whether the query selects the objects of an owner.
    pub(crate) fn has_owner(&self) -> bool {
        self.owner.is_some()
    }

    /// Returns the query without its owner.
    pub(crate) fn any_owner(self) -> Self {
        let owner = None;
        Self { owner, ..self }
    }

    /// Returns whether an object matches.
    #[must_use]
    pub fn matches(&self, object: &CachedObject) -> bool {
        let key = object.key();
        self.namespace
            .as_deref()
            .is_none_or(|wanted| key.namespace() == Some(wanted))
            && self
                .owner
                .as_ref()
                .is_none_or(|uid| object.owners().iter().any(|owner| owner.uid() == uid))
            && self.labels.matches(object.labels())
    }

    /// Calls a function for each matching object, in key order, at one moment.
    pub(super) fn visit(&self, store: &Kept, mut found: impl FnMut(&Arc<CachedObject>)) {
        if store.objects.len() >= WORTH_AN_INDEX {
            self.make_index(store);
        }
        // The lock is held only to find the candidates; evaluating them takes longer, and works on a snapshot.
        let candidates = Candidates::of(self, &store.objects.state());
        candidates.visit(|object| {
            if self.matches(object) {
                found(object);
            }
        });
    }

    /// Creates an index for the query, if one is missing.
    pub(super) fn make_index(&self, store: &Kept) {
        // First without the lock of writers: nearly every query finds its index.
        if Missing::of(self, &store.objects.state()).is_none() {
            return;
        }
        // Writers wait until the index is in place, so that it misses no change. Readers do not wait.
        let _writing = store.writing();
        let tree = store.objects.tree();
        // Another reader may have created it while this one waited for the lock.
        let missing = Missing::of(self, &store.objects.state());
        match missing {
            Some(Missing::Owners) => {
                // Built beside the others, so that readers of lists wait only for the exchange.
                let mut fresh = Indexes::default();
                fresh.index_owners(tree.iter().map(|object| &**object));
                store.objects.state_mut().indexes.adopt_owners(fresh);
            }
            Some(Missing::Label(label)) => {
                let index = LabelIndex::over(label, tree.iter());
                store.objects.state_mut().indexes.labels.add(label, index);
            }
            None => {}
        }
    }
}

impl Snapshot {
    /// Iterates over the matching objects, in key order.
    ///
    /// This evaluates every object; for large kinds use [`Cache::select`](crate::Cache::select), which uses indexes.
    ///
    /// ```
    /// use lariat::cache::Snapshot;
    /// use lariat::Query;
    ///
    /// fn print(pods: &Snapshot) {
    ///     for pod in pods.select(&Query::in_namespace("shop")) {
    ///         println!("{}", pod.key());
    ///     }
    /// }
    /// # let _ = print;
    /// ```
    pub fn select<'a>(&'a self, query: &'a Query) -> impl Iterator<Item = &'a Arc<CachedObject>> {
        self.iter().filter(|object| query.matches(object))
    }
}

/// With fewer objects, evaluating each is as fast as an index.
const WORTH_AN_INDEX: usize = 256;

/// An index is used if it leads to at most one in this many objects.
const SHORT: usize = 4;

/// An index that would speed up a query.
#[derive(Debug, Clone, Copy)]
enum Missing<'a> {
    Owners,
    Label(&'a str),
}

/// The candidates of a query, in key order; some may not match.
///
/// They are taken from the store under its lock, and evaluated without it.
pub(super) enum Candidates<'a> {
    These(Vec<Arc<CachedObject>>),
    /// To be looked up in the tree.
    Keys(Vec<ObjectKey>, Tree),
    Namespace(&'a str, Tree),
    All(Tree),
}

impl<'a> Missing<'a> {
    /// Returns the index that would lead to fewer candidates.
    fn of(query: &'a Query, state: &ListState) -> Option<Self> {
        if query.owner.is_some() {
            return (!state.indexes.has_owners()).then_some(Self::Owners);
        }
        // An index that is good enough exists already.
        let path = state.indexes.labels.path(&query.labels);
        if path.is_some_and(|path| path.count <= state.tree.len() / SHORT) {
            return None;
        }
        let mut labels = query
            .labels
            .required()
            .map(|(label, _)| label)
            .filter(|label| !state.indexes.labels.has(label));
        labels
            .next()
            .filter(|_| state.indexes.labels.has_room())
            .map(Self::Label)
    }
}

impl<'a> Candidates<'a> {
    /// Returns the fewest candidates that an index leads to.
    fn of(query: &'a Query, state: &ListState) -> Self {
        let labels = state.indexes.labels.path(&query.labels);
        let owner = query.owner.as_ref().filter(|_| state.indexes.has_owners());
        let by_label = labels.as_ref().map_or(usize::MAX, |path| path.count);
        let by_owner = owner.map_or(usize::MAX, |uid| state.indexes.owned_count(uid));
        let fewest = by_label.min(by_owner);
        if let Some(namespace) = &query.namespace {
            // Counted only up to the number of the other candidates.
            let met = in_namespace(&state.tree, namespace);
            if fewest == usize::MAX || met.take(fewest).count() < fewest {
                return Self::Namespace(namespace, state.tree.clone());
            }
        }
        match (owner, labels) {
            (Some(uid), _) if by_owner == fewest => {
                let keys: Vec<_> = state.indexes.owned_by(uid).collect();
                Self::with_keys(&keys, &state.tree)
            }
            // With more matches, going through all objects in order is faster than looking up each key.
            (_, Some(path)) if path.count <= state.tree.len() / SHORT => {
                Self::with_keys(&path.keys(), &state.tree)
            }
            _ => Self::All(state.tree.clone()),
        }
    }

    /// Returns the objects of some keys.
    ///
    /// The lock of the list state is held meanwhile, so many keys are looked up later.
    pub(super) fn with_keys(keys: &[&ObjectKey], tree: &Tree) -> Self {
        if keys.len() > CHUNK {
            let keys = keys.iter().map(|key| (*key).clone()).collect();
            return Self::Keys(keys, tree.clone());
        }
        let objects = keys.iter().filter_map(|key| tree.get(key.as_str()));
        Self::These(objects.cloned().collect())
    }

    pub(super) fn visit(&self, visit: impl FnMut(&Arc<CachedObject>)) {
        match self {
            Self::These(objects) => objects.iter().for_each(visit),
            Self::Keys(keys, tree) => {
                let objects = keys.iter().filter_map(|key| tree.get(key.as_str()));
                objects.for_each(visit);
            }
            Self::Namespace(namespace, tree) => in_namespace(tree, namespace).for_each(visit),
            Self::All(tree) => tree.iter().for_each(visit),
        }
    }
}

fn in_namespace<'a>(
    tree: &'a Tree,
    namespace: &'a str,
) -> impl Iterator<Item = &'a Arc<CachedObject>> {
    let objects = tree.from(&format!("{namespace}/"));
    objects.take_while(move |object| object.key().namespace() == Some(namespace))
}
