//! Filters that decide which objects are cached with their content.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use lariat_core::{Gvk, ObjectMetadata};
use tokio::sync::watch;

/// Decides which objects are cached with their content.
///
/// Of all others only metadata is cached. It is for replicas that share the objects between them: each caches the
/// metadata of all objects, and the content of its share. The filter is [set on a
/// factory](crate::CacheFactoryBuilder::content_filter) and applies to all its kinds. The predicate gets the kind and
/// the metadata, and returns `true` for objects that are cached with content. A clone is the same filter.
///
/// An object that the filter leaves out is like one of a kind that is stored [`OnDemand`](crate::Storage::OnDemand):
/// [`has_content`](crate::CachedObject::has_content) is false, reads of it fail with
/// [`DecodeError::is_no_content`](crate::DecodeError::is_no_content), and [`Informer::load`](crate::Informer::load)
/// fetches it with one request. Handlers still get its content. Reads of metadata, label selectors and owner queries
/// still find it, and its changes are published, without content. The functions of [indexes](crate::Cache::add_index)
/// and relations cannot read it, so the predicate must select all objects of kinds whose content they need.
///
/// # Changes of the predicate
///
/// The predicate is called whenever a state of an object is read: from a list, a watch or the answer to a write. It may
/// depend on labels and owners, because their changes are such states. If its result depends on anything else, send to
/// the `changed` channel *after* each change of the result. Then every kind whose content is in use is listed again:
/// one list per kind (one per namespace, if the kind is restricted to namespaces), followed by a new watch. Changes
/// during that list cause one further list, without a delay, so the sender must limit how often the filter changes.
///
/// Meanwhile the cache stays readable and [`Synced`](crate::Phase::Synced), with its previous objects. A list that
/// fails is retried with backoff. After the list, selected objects have content and the others have lost it.
/// Subscribers receive no change for that: enqueue the objects that gained content if handlers must run for them.
/// Custom indexes find these objects from then on; they find an object that lost its content under its last values
/// until it changes.
///
/// Kinds whose content is not in use are not listed again.
///
/// ```
/// use lariat::cache::{CacheFactoryBuilder, ContentFilter};
/// use tokio::sync::watch;
///
/// fn sharded(builder: CacheFactoryBuilder, share: watch::Receiver<u64>) -> CacheFactoryBuilder {
///     let filter = ContentFilter::new(share, |gvk, object| {
///         gvk.kind() != "Widget" || object.labels().get("shard") == Some("a")
///     });
///     builder.content_filter(filter)
/// }
/// # let _ = sharded;
/// ```
#[derive(Clone)]
pub struct ContentFilter {
    shared: Arc<Rule>,
}

struct Rule {
    changed: watch::Receiver<u64>,
    keeps: Box<Keeps>,
}

type Keeps = dyn Fn(&Gvk, &ObjectMetadata) -> bool + Send + Sync;

impl ContentFilter {
    /// Creates a filter that keeps content where `keeps` returns `true`.
    ///
    /// Every value sent to `changed`, also an equal one, means that `keeps` may return something else from now on; it
    /// must do so before the value is sent. Values sent before the filter is created do not count. If all senders are
    /// dropped, the filter does not change any more.
    ///
    /// `keeps` is called once or twice for each state of an object that is read, by the task that changes the cache and
    /// under the cache's lock: it must be quick and must not read caches. If it panics, the content is kept and an
    /// error is logged.
    #[must_use]
    pub fn new(
        mut changed: watch::Receiver<u64>,
        keeps: impl Fn(&Gvk, &ObjectMetadata) -> bool + Send + Sync + 'static,
    ) -> Self {
        changed.mark_unchanged();
        let keeps = Box::new(keeps);
        Self {
            shared: Arc::new(Rule { changed, keeps }),
        }
    }

    /// Returns the filter for one kind.
    pub(crate) fn of_kind(&self, gvk: &Gvk) -> KindFilter {
        KindFilter {
            filter: self.clone(),
            gvk: gvk.clone(),
        }
    }
}

impl fmt::Debug for ContentFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentFilter").finish_non_exhaustive()
    }
}

/// The filter for one kind.
#[derive(Debug)]
pub(crate) struct KindFilter {
    filter: ContentFilter,
    gvk: Gvk,
}

impl KindFilter {
    /// Returns whether the content of an object is kept.
    pub(crate) fn selects(&self, object: &ObjectMetadata) -> bool {
        let keeps = &self.filter.shared.keeps;
        catch_unwind(AssertUnwindSafe(|| keeps(&self.gvk, object))).unwrap_or_else(|_| {
            let (kind, key) = (&self.gvk, object.key());
            tracing::error!(%kind, %key, "the predicate of a content filter panicked; the content is kept");
            true
        })
    }

    /// Returns the changes of the filter from now on.
    pub(crate) fn changes(&self) -> FilterChanges {
        FilterChanges(Some(self.filter.shared.changed.clone()))
    }
}

/// The changes of a filter that a reflector has not applied yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct FilterChanges(Option<watch::Receiver<u64>>);

impl FilterChanges {
    /// Marks the current state of the filter as applied.
    pub(crate) fn see(&mut self) {
        if let Some(changed) = &mut self.0 {
            changed.mark_unchanged();
        }
    }

    /// Waits for a change that was not applied yet; for ever if none can come.
    pub(crate) async fn next(&mut self) {
        if let Some(changed) = &mut self.0
            && changed.changed().await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use lariat_core::RawObject;

    use super::*;

    fn gvk() -> Gvk {
        Gvk::new("", "v1", "ConfigMap")
    }

    #[test]
    fn each_follower_sees_a_change_once() {
        let share = watch::Sender::new(0);
        share.send_replace(1);
        let filter = ContentFilter::new(share.subscribe(), |_, _| true);
        let mut changes = filter.of_kind(&gvk()).changes();
        assert!(changes.clone().next().now_or_never().is_none());
        share.send_replace(2);
        share.send_replace(2);
        assert!(changes.clone().next().now_or_never().is_some());
        changes.see();
        assert!(changes.clone().next().now_or_never().is_none());
        drop(share);
        assert!(changes.next().now_or_never().is_none());
        assert!(FilterChanges::default().next().now_or_never().is_none());
    }

    #[test]
    fn a_predicate_that_panics_keeps_the_content() {
        let (_share, changed) = watch::channel(0);
        let filter = ContentFilter::new(changed, |_, object| {
            assert_ne!(object.key().name(), "bad", "as planned");
            false
        });
        let filter = filter.of_kind(&gvk());
        let object = |name: &str| {
            let json = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
            RawObject::parse(json.as_bytes(), &gvk()).unwrap()
        };
        assert!(filter.selects(&object("bad")));
        assert!(!filter.selects(&object("good")));
    }
}
