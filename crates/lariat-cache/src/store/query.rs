//! Which objects of a cache somebody wants.

use std::sync::Arc;

use lariat_core::{LabelSelector, ObjectKey, Uid};

use super::State;
use super::object::CachedObject;

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

/// The way to the objects of a query on which the fewest others are met.
enum Path<'a> {
    /// Through some keys, in order.
    Keys(Vec<&'a ObjectKey>),
    Namespace(&'a str),
    All,
}

impl State {
    /// Calls a function for each object that is wanted, in key order.
    pub(super) fn select<'a>(
        &'a self,
        query: &'a Query,
        mut found: impl FnMut(&'a Arc<CachedObject>),
    ) {
        let visit = |object: &'a Arc<CachedObject>| {
            if query.matches(object) {
                found(object);
            }
        };
        match self.path(query) {
            Path::Keys(keys) => {
                let objects = keys
                    .into_iter()
                    .filter_map(|key| self.tree.get(key.as_str()));
                objects.for_each(visit);
            }
            Path::Namespace(namespace) => self.in_namespace(namespace).for_each(visit),
            Path::All => self.tree.iter().for_each(visit),
        }
    }

    fn path<'a>(&'a self, query: &'a Query) -> Path<'a> {
        let labels = self.indexes.labels.path(&query.labels);
        let owner = query.owner.as_ref().filter(|_| self.indexes.has_owners());
        let by_label = labels.as_ref().map_or(usize::MAX, |path| path.count);
        let by_owner = owner.map_or(usize::MAX, |uid| self.indexes.owned_count(uid));
        let fewest = by_label.min(by_owner);
        if let Some(namespace) = &query.namespace {
            // Counted no further than the others go.
            if fewest == usize::MAX || self.in_namespace(namespace).nth(fewest).is_none() {
                return Path::Namespace(namespace);
            }
        }
        match (owner, labels) {
            (Some(uid), _) if by_owner == fewest => {
                Path::Keys(self.indexes.owned_by(uid).collect())
            }
            (_, Some(path)) => Path::Keys(path.keys()),
            _ => Path::All,
        }
    }

    fn in_namespace<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<CachedObject>> {
        let objects = self.tree.from(&format!("{namespace}/"));
        objects.take_while(move |object| object.key().namespace() == Some(namespace))
    }
}
