//! Which objects of a cache somebody wants.

use std::sync::Arc;

use lariat_core::{LabelSelector, ObjectKey, Uid};

use super::State;
use super::object::CachedObject;
use super::tree::Tree;
use super::writer::CHUNK;

/// Says which objects are wanted; all that is said must hold.
///
/// ```
/// use lariat_cache::Query;
///
/// let query = Query::in_namespace("shop").labels("app in (web, api), !canary".parse()?);
/// # let _ = query; Ok::<(), lariat_core::SelectorError>(())
/// ```
///
/// Whatever is asked, the answer is in key order and of one moment. Only the objects of the answer are
/// decoded. A namespace, an owner, and labels with given values (`app=web`, `app in (web, api)`) are found
/// through an index, which is made when it is first asked for; indexes of labels are kept for the eight that
/// were asked for last.
#[derive(Debug, Clone, Default)]
#[must_use = "a query does nothing until a cache is asked"]
pub struct Query {
    pub(super) namespace: Option<String>,
    pub(super) labels: LabelSelector,
    pub(super) owner: Option<Uid>,
}

impl Query {
    /// Wants all objects.
    pub fn all() -> Self {
        Self::default()
    }

    /// Wants the objects of a namespace.
    pub fn in_namespace(namespace: &str) -> Self {
        Self::all().namespace(namespace)
    }

    /// Wants the objects that have an owner, whether or not it is their managing controller.
    pub fn owned_by(uid: &Uid) -> Self {
        Self::all().owner(uid)
    }

    /// Wants only objects of a namespace.
    pub fn namespace(self, namespace: &str) -> Self {
        let namespace = Some(namespace.to_owned());
        Self { namespace, ..self }
    }

    /// Wants only objects whose labels match.
    pub fn labels(self, labels: LabelSelector) -> Self {
        Self { labels, ..self }
    }

    /// Wants only objects that have an owner.
    pub fn owner(self, uid: &Uid) -> Self {
        let owner = Some(uid.clone());
        Self { owner, ..self }
    }

    /// Returns whether an object is wanted.
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
}

/// An index that would help with a query.
#[derive(Debug, Clone, Copy)]
pub(super) enum Missing<'a> {
    Owners,
    Label(&'a str),
}

/// Where the objects of a query are, taken out of the store: in key order, with others among them.
pub(super) enum Candidates<'a> {
    These(Vec<Arc<CachedObject>>),
    /// To be looked up.
    Keys(Vec<ObjectKey>, Tree),
    Namespace(&'a str, Tree),
    All(Tree),
}

impl Candidates<'_> {
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

/// A way through an index is worth it if it meets fewer than one in so many objects.
const SHORT: usize = 4;

impl State {
    /// Returns an index that would make the way to the objects of a query shorter.
    pub(super) fn missing<'a>(&self, query: &'a Query) -> Option<Missing<'a>> {
        if query.owner.is_some() {
            return (!self.indexes.has_owners()).then_some(Missing::Owners);
        }
        let path = self.indexes.labels.path(&query.labels);
        if path.is_some_and(|path| path.count <= self.tree.len() / SHORT) {
            return None;
        }
        let labels = query.labels.required().map(|(label, _)| label);
        let mut labels = labels.filter(|label| !self.indexes.labels.has(label));
        labels
            .next()
            .filter(|_| self.indexes.labels.has_room())
            .map(Missing::Label)
    }

    /// Takes out the objects on the shortest way there is.
    pub(super) fn candidates<'a>(&self, query: &'a Query) -> Candidates<'a> {
        let labels = self.indexes.labels.path(&query.labels);
        let owner = query.owner.as_ref().filter(|_| self.indexes.has_owners());
        let by_label = labels.as_ref().map_or(usize::MAX, |path| path.count);
        let by_owner = owner.map_or(usize::MAX, |uid| self.indexes.owned_count(uid));
        let fewest = by_label.min(by_owner);
        if let Some(namespace) = &query.namespace {
            // Counted no further than the others go.
            let met = in_namespace(&self.tree, namespace);
            if fewest == usize::MAX || met.take(fewest).count() < fewest {
                return Candidates::Namespace(namespace, self.tree.clone());
            }
        }
        match (owner, labels) {
            (Some(uid), _) if by_owner == fewest => {
                let keys: Vec<_> = self.indexes.owned_by(uid).collect();
                self.with_keys(&keys)
            }
            (_, Some(path)) if path.count <= self.tree.len() / SHORT => {
                self.with_keys(&path.keys())
            }
            _ => Candidates::All(self.tree.clone()),
        }
    }

    /// Takes out the objects with some keys. The lock of lists is held meanwhile, so many are only looked up later.
    pub(super) fn with_keys(&self, keys: &[&ObjectKey]) -> Candidates<'static> {
        if keys.len() > CHUNK {
            let keys = keys.iter().map(|key| (*key).clone()).collect();
            return Candidates::Keys(keys, self.tree.clone());
        }
        let objects = keys.iter().filter_map(|key| self.tree.get(key.as_str()));
        Candidates::These(objects.cloned().collect())
    }
}

fn in_namespace<'a>(
    tree: &'a Tree,
    namespace: &'a str,
) -> impl Iterator<Item = &'a Arc<CachedObject>> {
    let objects = tree.from(&format!("{namespace}/"));
    objects.take_while(move |object| object.key().namespace() == Some(namespace))
}
