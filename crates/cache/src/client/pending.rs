//! Pending writes: what gates are asked about.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use http::Request;
use lariat_core::{Gvk, LabelSelector, ObjectKey};

use super::write::{KindCache, Write, WriteObserver, WriteVerb};
use crate::store::{CachedObject, Query, Store};

/// A write that is about to be sent.
///
/// Its text is `delete v1 Pod shop/web-0` or, if the kind is not cached, `delete v1 pods shop/web-0`.
pub struct PendingWrite<'a> {
    write: &'a Write,
    /// The query of the request.
    query: &'a str,
    followed_by: &'static [WriteVerb],
    observer: &'a dyn WriteObserver,
    /// The cache of the kind, once it was looked up.
    cache: OnceCell<Option<KindCache>>,
}

/// The writes that follow a write, as an extension of its request.
///
/// A write that must not remain alone, such as the deletion of an object that is created again, announces the others.
/// So a gate can [decide about all of them](PendingWrite::followed_by) before the first one is sent. Each of them is
/// still asked about when it is sent.
///
/// ```
/// use lariat::cache::{FollowedBy, WriteVerb};
///
/// let mut request = http::Request::delete("/api/v1/namespaces/shop/configmaps/web").body(Vec::<u8>::new())?;
/// request.extensions_mut().insert(FollowedBy(&[WriteVerb::Create]));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowedBy(pub &'static [WriteVerb]);

impl<'a> PendingWrite<'a> {
    /// Describes a write; the request has its query, and the writes that follow.
    pub(super) fn of<B>(
        write: &'a Write,
        request: &'a Request<B>,
        observer: &'a dyn WriteObserver,
    ) -> Self {
        let followed_by = request.extensions().get::<FollowedBy>();
        Self {
            write,
            query: request.uri().query().unwrap_or_default(),
            followed_by: followed_by.map_or(&[], |following| following.0),
            observer,
            cache: OnceCell::new(),
        }
    }

    /// Returns the verb of the write.
    #[must_use]
    pub fn verb(&self) -> WriteVerb {
        self.write.verb()
    }

    /// Returns the path of group and version: `/api/v1`, or `/apis/group/version`.
    #[must_use]
    pub fn api_path(&self) -> &str {
        &self.write.api_path
    }

    /// Returns the plural resource name.
    #[must_use]
    pub fn plural(&self) -> &str {
        &self.write.plural
    }

    /// Returns the namespace of the object or collection.
    ///
    /// `None` for a cluster-scoped object, and for a collection over all namespaces.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.write.namespace.as_deref()
    }

    /// Returns the key of the object.
    ///
    /// `None` for a collection, and for a creation, whose name is in its body.
    #[must_use]
    pub fn key(&self) -> Option<ObjectKey> {
        (!self.write.name.is_empty()).then(|| self.write.key())
    }

    /// Returns the subresource, if the write is to one.
    #[must_use]
    pub fn subresource(&self) -> Option<&str> {
        self.write.subresource.as_deref()
    }

    /// Returns whether the caller requested a dry run, which stores nothing.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.write.is_dry_run
    }

    /// Returns the verbs of the writes to the same object that follow.
    ///
    /// Empty unless the request [announces](FollowedBy) any.
    #[must_use]
    pub fn followed_by(&self) -> &'static [WriteVerb] {
        self.followed_by
    }

    /// Returns the kind, if it is cached.
    #[must_use]
    pub fn gvk(&self) -> Option<&Gvk> {
        self.cache().map(|cache| &cache.gvk)
    }

    /// Returns the store of the kind, if it is cached; it may not have synced yet.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<Store>> {
        self.cache().map(|cache| &cache.store)
    }

    /// Returns the cached state of the object, if there is one.
    #[must_use]
    pub fn cached(&self) -> Option<Arc<CachedObject>> {
        self.store()?.get(&self.key()?)
    }

    /// Returns how many objects the write affects.
    ///
    /// The number is one, or for a collection the number of cached objects with its namespace and labels. A field
    /// selector is ignored, so fewer objects may be affected. Returns `None` if the cache cannot know: there is none,
    /// it has not synced or is not up to date, it is restricted to a [selection](crate::Selection) of labels, fields or
    /// other namespaces, or it reads from a [`Source`](crate::Source) of the caller.
    #[must_use]
    pub fn objects(&self) -> Option<usize> {
        if self.verb() != WriteVerb::DeleteCollection {
            return Some(1);
        }
        let cache = self.cache().filter(|cache| cache.is_whole)?;
        let mut query = self
            .namespace()
            .map_or_else(Query::all, Query::in_namespace);
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        let labels = pairs.find(|(name, _)| name == "labelSelector");
        // Labels that cannot be parsed here count as all labels: more objects rather than fewer.
        let labels = labels.and_then(|(_, text)| text.parse::<LabelSelector>().ok());
        if let Some(labels) = labels {
            query = query.labels(labels);
        }
        Some(cache.store.count(&query))
    }

    fn cache(&self) -> Option<&KindCache> {
        let cache = || self.observer.cache_of(self.write);
        self.cache.get_or_init(cache).as_ref()
    }
}

impl fmt::Display for PendingWrite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb())?;
        match self.gvk() {
            Some(gvk) => write!(f, "{gvk}")?,
            None => write!(f, "{}", self.write.resource())?,
        }
        match (self.key(), self.namespace()) {
            (Some(key), _) => write!(f, " {key}")?,
            (None, Some(namespace)) => write!(f, " in {namespace}")?,
            (None, None) => {}
        }
        match self.subresource() {
            Some(subresource) => write!(f, " ({subresource})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for PendingWrite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingWrite").field(self.write).finish()
    }
}
