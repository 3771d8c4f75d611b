//! The core of an informer: the part that all uses of a kind share.

use std::cmp;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey, ObjectMetadata, ResourceKind, ResourceVersion, Scope, Uid};
use tokio::sync::{Mutex, Notify, watch};
use tokio::time;

use super::missed::MissedWrites;
use crate::client::{KindClient, Sent};
use crate::content_filter::ContentFilter;
use crate::options::{KindOptions, MissingKind};
use crate::publish::{
    Budget, ContentHold, Filling, KindStatus, LastUpdates, Meaning, Phase, Progress, Publisher,
    SharedBudget, Usage,
};
use crate::reflector::{Intake, SharedServer, Source};
use crate::selection::Selection;
use crate::store::{Content, Storage, Store};
use crate::warm::{ClusterUid, WarmSource, WarmStore};

/// The part of an informer that all uses of the kind share.
pub(crate) struct Core {
    pub(super) client: Arc<KindClient>,
    pub(super) store: Arc<Store>,
    pub(super) publisher: Arc<Publisher>,
    pub(super) progress: Arc<Progress>,
    pub(super) options: KindOptions,
    pub(super) shared: Shared,
    pub(super) source: Option<Arc<dyn Source>>,
    pub(super) wanted: watch::Sender<Wanted>,
    /// The form in which the kind is stored; the budget may change it.
    pub(super) storage: watch::Sender<Storage>,
    /// Counts the relists that were requested.
    pub(super) relists: watch::Sender<u64>,
    pub(super) usage: Arc<Usage>,
    /// The source of an earlier run's objects, until the first start has read it.
    pub(super) warm_source: parking_lot::Mutex<Option<Arc<dyn WarmSource>>>,
    /// How often the selection or the content changed.
    pub(super) generation: AtomicU64,
    /// Whether saved objects are outdated because of a write whose answer was not applied.
    pub(super) missed_answers: AtomicBool,
    /// Whether the saved objects of an earlier run were looked for.
    pub(super) is_warmed: AtomicBool,
    /// The version of the loaded objects, and how they were read.
    pub(super) resume: parking_lot::Mutex<Option<(ResourceVersion, Wanted, Content)>>,
    /// Keeps the content cached for indexes.
    indexed: OnceLock<ContentHold>,
    /// Locked during a run, so that a stopped run ends before the next one begins.
    pub(super) run: Mutex<()>,
}

/// What the users of a kind want to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The objects that are read.
    pub(super) selection: Selection,
    /// Whether a user needs content.
    pub(super) content: bool,
}

/// The parts that all informers of a factory share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) missing: MissingKind,
    pub(crate) budget: SharedBudget,
    /// The files in which stores are saved between two runs.
    pub(crate) warm: Option<WarmStore>,
    pub(crate) cluster: ClusterUid,
    pub(crate) filter: Option<ContentFilter>,
    /// The state of the API server, as the reflectors of all kinds have seen it.
    pub(crate) server: SharedServer,
    /// The last updates of objects, if they are kept.
    pub(crate) updates: Arc<LastUpdates>,
    /// Notified when a kind becomes unused.
    pub(crate) idle: Arc<Notify>,
    /// The resources that were written while no kind was known to be theirs.
    pub(crate) missed: Arc<MissedWrites>,
}

impl Core {
    pub(crate) fn new(
        client: Arc<KindClient>,
        source: Option<Arc<dyn Source>>,
        options: KindOptions,
        shared: Shared,
    ) -> Self {
        // The filter is asked with the kind, so each store gets its own view of it.
        let filter = shared.filter.as_ref();
        let filter = filter.map(|filter| filter.of_kind(client.gvk()));
        let store = Arc::new(Store::filtered(filter));
        store.set_storage(options.storage);
        let storage = watch::Sender::new(options.storage);
        let (gvk, all) = (client.gvk().clone(), shared.budget.clone());
        let budget = Budget::new(
            options.budget,
            all,
            gvk,
            Arc::clone(&store),
            storage.clone(),
        );
        let usage = Usage::new(Arc::clone(&shared.idle));
        let publisher = Publisher::new(
            client.gvk().clone(),
            Arc::clone(&store),
            budget,
            Arc::clone(&shared.updates),
        );
        Self {
            progress: Arc::new(Progress::new(client.gvk().clone(), Arc::clone(&usage))),
            publisher: Arc::new(publisher),
            store,
            client,
            wanted: watch::Sender::new(Wanted {
                selection: options.selection.clone(),
                content: false,
            }),
            options,
            shared,
            source,
            storage,
            relists: watch::Sender::new(0),
            usage,
            warm_source: parking_lot::Mutex::default(),
            generation: AtomicU64::new(0),
            missed_answers: AtomicBool::new(false),
            is_warmed: AtomicBool::new(false),
            resume: parking_lot::Mutex::default(),
            indexed: OnceLock::new(),
            run: Mutex::default(),
        }
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        self.client.gvk()
    }

    /// Returns how long a start waits for the kind, if its options say so.
    pub(crate) fn sync_timeout(&self) -> Option<Duration> {
        self.options.sync_timeout
    }

    pub(crate) fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    /// Returns whether the cache has ever synced.
    pub(crate) fn was_filled(&self) -> bool {
        self.progress.was_filled()
    }

    pub(crate) fn status(&self) -> KindStatus {
        let holds_content = self.publisher.budget().holds_content();
        self.progress.status(&self.store, holds_content)
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn objects(&self) -> usize {
        self.store.len()
    }

    /// Returns the resource of the kind, if it is known.
    pub(crate) fn resource(&self) -> Option<ResourceKind> {
        self.client.known_resource()
    }

    /// Returns the resource of the kind, or the last known one.
    pub(crate) fn last_resource(&self) -> Option<ResourceKind> {
        self.client.last_resource()
    }

    /// Returns whether the cache is current and has all objects of a namespace, or all.
    pub(crate) fn is_whole(&self, namespace: Option<&str>) -> bool {
        // A source of the caller may leave objects out.
        if self.source.is_some() || !self.is_followed() {
            return false;
        }
        let is_cluster = self
            .resource()
            .is_some_and(|resource| resource.scope() == Scope::Cluster);
        // Nothing is known about a namespace that the cache is used without.
        let is_forbidden = self.is_forbidden(namespace);
        let selection = &self.wanted.borrow().selection;
        selection.selects_by_namespace_only()
            && (is_cluster || selection.covers(namespace) && !is_forbidden)
    }

    /// Returns whether the cache is used without a namespace, which is forbidden.
    fn is_forbidden(&self, namespace: Option<&str>) -> bool {
        let forbidden = self.progress.forbidden();
        forbidden.iter().any(|it| Some(&**it) == namespace)
    }

    /// Returns whether the value at a JSON pointer is cached unchanged.
    pub(crate) fn caches_unchanged(&self, pointer: &str) -> bool {
        let transform = self.options.transform.as_ref();
        self.source.is_none()
            && transform.is_none_or(|transform| transform.leaves_unchanged(pointer))
    }

    /// Waits until the cache has synced; `read` is the part of the objects that the caller reads.
    ///
    /// Returns `false` if the kind is not served and the cache does not wait for it, or if it cannot be watched.
    pub(crate) async fn synced(&self, read: Content) -> bool {
        self.settled(|filling| Self::is_synced(filling, self.awaited(read)))
            .await
    }

    /// Waits until the cache can be read: it has synced, or had when stopped.
    pub(crate) async fn readable(&self, read: Content) -> bool {
        self.settled(|filling| Self::is_readable(filling, self.awaited(read)))
            .await
    }

    /// Waits like [`readable`](Self::readable), up to a shared timeout.
    ///
    /// Returns `None` after the timeout.
    pub(crate) async fn readable_within(&self, read: Content, timeout: Duration) -> Option<bool> {
        // Beforehand: the closure is called under the lock of the progress.
        let awaited = self.awaited(read);
        if Self::is_readable(&self.filling(), awaited) {
            return Some(true);
        }
        let is_readable = |filling: &Filling| Self::is_readable(filling, awaited);
        let since = self.progress.unreadable_since(is_readable);
        match since.checked_add(timeout) {
            Some(deadline) => time::timeout_at(deadline, self.readable(read)).await.ok(),
            None => Some(self.readable(read).await),
        }
    }

    fn filling(&self) -> Filling {
        self.progress.filling().borrow().clone()
    }

    /// Returns whether the cache can be read: it has synced, or had when stopped.
    ///
    /// Handlers that finish during a stop still read their own writes; the next start compares everything with the API
    /// server.
    fn is_readable(filling: &Filling, awaited: Content) -> bool {
        match filling.phase {
            Phase::Idle => filling.was_filled,
            _ => Self::is_synced(filling, awaited),
        }
    }

    /// Returns whether the cache has synced with the awaited part of the objects.
    fn is_synced(filling: &Filling, awaited: Content) -> bool {
        let lacks_content = awaited == Content::Whole && filling.reading_since.is_some();
        filling.phase == Phase::Synced && !lacks_content
    }

    /// Returns the part of the objects that a reader waits for.
    ///
    /// It is content only if the kind is cached with it.
    fn awaited(&self, read: Content) -> Content {
        match read {
            Content::Whole => self.wanted_content(),
            Content::MetadataOnly => read,
        }
    }

    /// Waits for a state; `false` if the kind cannot be read and is not waited for.
    async fn settled(&self, is_good: impl Fn(&Filling) -> bool) -> bool {
        let missing = self.options.missing.unwrap_or(self.shared.missing);
        let gives_up = |phase: &Phase| match phase {
            Phase::Missing => missing == MissingKind::Refuse,
            // Waiting is for a CRD that is not installed yet; this kind will hardly get the verbs.
            Phase::Unwatchable => true,
            _ => false,
        };
        let settled = self
            .wait_for(|filling| is_good(filling) || gives_up(&filling.phase))
            .await;
        settled.is_some_and(|filling| !filling.phase.is_unserved())
    }

    /// Waits for a state and returns it; `None` if there will be no other.
    async fn wait_for(&self, is_good: impl Fn(&Filling) -> bool) -> Option<Filling> {
        let mut filling = self.progress.filling();
        loop {
            // A copy: `is_good` locks `wanted`, and whoever changes `wanted` locks the filling meanwhile.
            let now = filling.borrow_and_update().clone();
            if is_good(&now) {
                return Some(now);
            }
            filling.changed().await.ok()?;
        }
    }

    /// Waits until the cache has synced, even if the kind is not served for now.
    #[cfg(feature = "kube-runtime")]
    pub(super) async fn filled(&self, read: Content) {
        self.wait_for(|filling| Self::is_synced(filling, self.awaited(read)))
            .await;
    }

    /// Returns whether content is being read: for the first time, or while metadata is cached.
    pub(crate) fn is_upgrading(&self) -> bool {
        self.upgrading_for().is_some()
    }

    /// Returns how long content has been read for; `None` if it is not being read.
    pub(crate) fn upgrading_for(&self) -> Option<Duration> {
        let since = self.filling().reading_since?;
        (self.wanted_content() == Content::Whole).then(|| since.elapsed())
    }

    /// Keeps the content of all objects cached as long as the returned hold exists.
    pub(crate) fn hold_content(&self) -> ContentHold {
        self.publisher.budget().hold_content(|| {
            // A new round in any case: the form may be the same again before the informer looks.
            self.wanted.send_modify(|_| {
                self.generation.fetch_add(1, Ordering::SeqCst);
                self.progress.upgrade();
            });
        })
    }

    /// Keeps the content of all objects cached for an index, which is never removed.
    pub(crate) fn index_content(&self) {
        self.indexed.get_or_init(|| self.hold_content());
    }

    /// Returns whether the cache follows the API server now.
    pub(crate) fn is_followed(&self) -> bool {
        self.progress.is_current()
    }

    /// Requests a new list; returns whether the informer runs.
    pub(crate) fn relist(&self) -> bool {
        if self.progress.phase() == Phase::Idle {
            return false;
        }
        self.relists.send_modify(|asked| *asked += 1);
        true
    }

    /// Records that a run begins; until it has synced, the cache has not.
    pub(super) fn begin(&self) {
        self.progress.start();
    }

    /// Applies the answer to a write of this process, if its meaning is certain.
    ///
    /// `sent` is the state when the write was sent. An answer with metadata only is left to the watch if the
    /// content of the object is cached.
    pub(crate) fn wrote(&self, answer: &[u8], of_answer: Content, deleted: bool, sent: Sent) {
        if !self.takes_answers(sent.number) {
            return;
        }
        let content = self.wanted_content();
        let Ok(object) = self.intake(content).read(answer) else {
            return;
        };
        if deleted {
            let (key, uid) = (object.key(), object.uid());
            return self.publisher.deleted(key, uid, &sent);
        }
        let is_enough = |object: &ObjectMetadata| {
            of_answer == Content::Whole || !self.store.wants_content(content, object)
        };
        let meaning = |object: &ObjectMetadata| match self.meaning(object) {
            // Metadata must not replace cached content; the watch brings the new content.
            Meaning::Selected if !is_enough(object) => Meaning::Unknown,
            meaning => meaning,
        };
        // A filter may keep the content of this state, so an answer with metadata only must be marked as such.
        let content = match of_answer {
            Content::Whole => content,
            Content::MetadataOnly => Content::MetadataOnly,
        };
        self.publisher.wrote(object, content, sent, meaning);
    }

    /// Caches a fetched object that is newer than the cached one, as the answer to a write.
    ///
    /// A handler sees the fetched object. If the cache left it out, and the server were restored from a backup before
    /// the watch reports it, the cache would see no change, and no handler would be called with the restored state.
    pub(super) fn saw(&self, fetched: &ObjectMetadata, json: &[u8], sent: u64) {
        let cached = self.store.get(fetched.key());
        let order = cached.and_then(|cached| fetched.version().compare(cached.version()));
        if order != Some(cmp::Ordering::Greater) || !self.takes_answers(sent) {
            return;
        }
        let content = self.wanted_content();
        if let Ok(object) = self.intake(content).read(json) {
            self.publisher
                .answered(object, content, sent, |object| self.meaning(object));
        }
    }

    /// Applies a deletion by this process; `sent` is as for [`wrote`](Self::wrote).
    pub(crate) fn deleted(&self, key: &ObjectKey, uid: &Uid, sent: &Sent) {
        if self.takes_answers(sent.number) {
            self.publisher.deleted(key, uid, sent);
        }
    }

    /// Returns whether the answer to a request is applied; `sent` is its number.
    ///
    /// It is from the first start on. From then on, an answer may be newer than a list in progress. Writes before the
    /// first start are in its list. A source of the caller may leave the object out, or read another cluster. A request
    /// that was sent before a restore was found may have been answered by the former history; if it was not, the watch
    /// reports what it wrote.
    fn takes_answers(&self, sent: u64) -> bool {
        if self.source.is_some() {
            return false;
        }
        let takes = self.progress.phase() != Phase::Idle || self.progress.was_filled();
        if !takes {
            self.missed_answers.store(true, Ordering::Relaxed);
        }
        takes && !self.shared.server.is_former(sent)
    }

    /// Returns whether the kind was written before it was used or looked up.
    pub(super) fn has_missed_write(&self) -> bool {
        let missed = &self.shared.missed;
        let resource = self.resource();
        resource.is_some_and(|it| missed.has(&it.gvk().api_path(), it.plural()))
    }

    /// Returns what an object means for the selection of the kind.
    fn meaning(&self, object: &ObjectMetadata) -> Meaning {
        // No watch would report what follows.
        if self.options.may_be_forbidden && self.is_forbidden(object.key().namespace()) {
            return Meaning::Unknown;
        }
        let selection = &self.wanted.borrow().selection;
        match selection.selects(object) {
            Some(true) => Meaning::Selected,
            Some(false) => Meaning::NotSelected,
            // Left to the watch.
            None => Meaning::Unknown,
        }
    }

    /// Creates the intake that reads objects as this kind stores them.
    pub(super) fn intake(&self, content: Content) -> Intake {
        let options = &self.options;
        let transform = options.transform.clone();
        Intake::new(
            self.gvk().clone(),
            content,
            options.managed_fields,
            transform,
        )
    }
}
