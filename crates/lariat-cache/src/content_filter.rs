//! Which objects are cached with their content.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use lariat_core::{Gvk, ObjectMetadata};
use tokio::sync::watch;

/// Chooses the objects whose content is cached; of the others only metadata is.
///
/// Replicas that divide the objects use it: each caches the metadata of all objects, and the content of its share. The filter is
/// [given to a factory](crate::CacheFactoryBuilder::content_filter) and applies to all its kinds; the predicate gets the
/// kind, and returns `true` for those that are cached whole. A clone is the same filter.
///
/// An object that is left out is as in a kind that is kept [`OnDemand`](crate::Storage::OnDemand):
/// [`has_content`](crate::CachedObject::has_content) is false, reads of it fail with
/// [`DecodeError::is_no_content`](crate::DecodeError::is_no_content), and
/// [`Informer::load`](crate::Informer::load) fetches it with one request. Handlers get its content all the same. Reads of
/// metadata, label selectors and owner queries find it as before, and its changes are published, without content.
/// Functions of [indexes](crate::Cache::add_index) and relations cannot read it, so kinds whose content they need for
/// every object have to be kept whole.
///
/// # Changes of the predicate
///
/// The predicate decides whenever a state of an object is read: from a list, a watch or the answer to a write. It may
/// use labels and owners, and follows them. If its answer depends on anything else, the `changed` channel has to move
/// *after* each change of the answer. Then every kind whose content is in use reads everything again, which costs one
/// list per kind (one per namespace, if the kind is restricted to namespaces), and the watch is opened again after it.
/// Changes during that list cause one further list; no pause is made between them, so the sender limits how often the
/// filter changes.
///
/// Meanwhile the cache stays readable and [`Synced`](crate::Phase::Synced), and is as it was. A list that fails is
/// tried again with growing pauses. When it ends, objects that are kept now have content and those that are left out
/// have lost it. Subscribers see no change for that, so whoever needs a call for gained objects enqueues them. Custom
/// indexes find gained objects from then on, and go on to find lost ones under their last values until they change;
/// after that they do not find them.
///
/// Kinds whose content is not in use read nothing again.
///
/// ```
/// use lariat_cache::{CacheFactoryBuilder, ContentFilter};
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
    /// Makes a filter that keeps the content of the objects for which `keeps` returns `true`.
    ///
    /// Every value sent to `changed`, also an equal one, says that `keeps` may answer differently now; it has to do so
    /// before the value is sent. What was sent before the filter is made does not count. If all senders are dropped, the
    /// filter does not change any more.
    ///
    /// `keeps` is called once or twice for each state of an object that is read, by whoever changes the cache and under
    /// its lock: it must be prompt and must not read caches. If it panics, the content is kept and an error is logged.
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

    /// Returns the filter as it concerns a kind.
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

/// A filter as it concerns a kind.
#[derive(Debug)]
pub(crate) struct KindFilter {
    filter: ContentFilter,
    gvk: Gvk,
}

impl KindFilter {
    /// Returns whether the content of an object is kept.
    pub(crate) fn keeps(&self, object: &ObjectMetadata) -> bool {
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

/// The changes of a filter that a reflector has not read with yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct FilterChanges(Option<watch::Receiver<u64>>);

impl FilterChanges {
    /// Notes that what is read from now on is read with the filter as it is.
    pub(crate) fn see(&mut self) {
        if let Some(changed) = &mut self.0 {
            changed.mark_unchanged();
        }
    }

    /// Waits for a change that was not seen yet.
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
    fn a_change_is_seen_once_by_each_who_follows() {
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
        assert!(filter.keeps(&object("bad")));
        assert!(!filter.keeps(&object("good")));
    }
}
