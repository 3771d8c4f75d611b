//! The caches that a controller waits for: of its own kind, of related kinds, and of object content.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select_all;
use lariat_cache::{Informer, Phase};
use lariat_core::Gvk;
use lariat_queue::WaitsFor;
use parking_lot::Mutex;
use tokio::time::{self, Instant};

use super::joined::{AnyRelation, Enqueuer, Joined};
use crate::hot_loop::Detector;
use crate::lane::{Lane, Lanes};
use crate::payload::Queue;

/// How long calls wait while the watch is upgraded from metadata to content.
///
/// It counts from the beginning of the upgrade. Afterwards objects are fetched one by one.
const UPGRADE_PATIENCE: Duration = Duration::from_secs(20);

/// How often a kind that is not served is checked again.
const MISSING_PERIOD: Duration = Duration::from_secs(1);

/// How long a handler waits for a related kind that is not served.
///
/// An API server that has just started does not serve its custom resources for a while. Afterwards the kind counts as
/// one without objects.
const MISSING_PATIENCE: Duration = Duration::from_secs(30);

/// How long a handler waits before a warning is logged.
const LONG: Duration = Duration::from_secs(30);

/// The caches of a controller, and the keys that wait for them.
pub(crate) struct Caches {
    /// The cache of the kind.
    informer: Informer,
    queue: Queue,
    lanes: Arc<Lanes>,
    detector: Arc<Detector>,
    /// The related kinds whose changes enqueue keys of this kind.
    related: Mutex<Vec<Joined>>,
}

impl Caches {
    pub(super) fn new(
        informer: Informer,
        queue: Queue,
        lanes: Arc<Lanes>,
        detector: Arc<Detector>,
    ) -> Self {
        Self {
            informer,
            queue,
            lanes,
            detector,
            related: Mutex::default(),
        }
    }

    /// Starts to enqueue keys when objects of a related kind change.
    pub(crate) fn relate(&self, relation: &Arc<dyn AnyRelation>) {
        let is_it = |joined: &Joined| joined.relation.number() == relation.number();
        if self.related.lock().iter().any(is_it) {
            return;
        }
        let joined = Arc::clone(relation).join(Enqueuer {
            client: Arc::clone(self.informer.client()),
            queue: self.queue.clone(),
            lanes: Arc::clone(&self.lanes),
            detector: Arc::clone(&self.detector),
        });
        let mut related = self.related.lock();
        // Joining subscribes to a cache and calls the user's map, so the lock is not held meanwhile. Another task may
        // have joined the same relation in between; then this one is dropped.
        if related.iter().any(is_it) {
            drop(related);
            return drop(joined);
        }
        related.push(joined);
        drop(related);
        // The supervisor selects over the related caches, and has to include the new one.
        self.lanes.notify();
    }

    /// Ends all relations.
    pub(crate) fn unrelate_all(&self) {
        let related = std::mem::take(&mut *self.related.lock());
        drop(related);
    }

    /// Ends a relation, if it is joined.
    pub(crate) fn unrelate(&self, number: u64) {
        let mut related = self.related.lock();
        let ended: Vec<Joined> = related
            .extract_if(.., |each| each.relation.number() == number)
            .collect();
        drop(related);
        // Dropping a subscription may wait for a publisher, so it happens after unlocking.
        drop(ended);
    }

    /// Waits until the cache of the kind is synced; those of related kinds hold up the handlers that they concern.
    pub(crate) async fn own_synced(&self) {
        // `false` means that the kind is not served now.
        while !self.informer.synced().await {
            time::sleep(MISSING_PERIOD).await;
        }
    }

    /// Returns whether the caches of the kind and of its related kinds are synced.
    pub(crate) fn is_synced(&self) -> bool {
        let informers = self.informers().into_iter();
        informers
            .map(|informer| informer.status().phase)
            .all(|phase| phase == Phase::Synced)
    }

    /// Returns the informers of the related kinds and of the kind.
    fn informers(&self) -> Vec<Informer> {
        let related = self.related.lock();
        let related = related.iter().map(|joined| &joined.informer);
        related.chain([&self.informer]).cloned().collect()
    }

    /// Enqueues the owners that wait until the scope of the kind is known.
    ///
    /// Call it once the cache of the kind is synced: discovery has returned the scope by then.
    pub(crate) fn place_owners(&self) {
        let related = self.related.lock();
        related.iter().for_each(|joined| joined.feed.place_owners());
    }

    /// Replays related objects that were published without their content.
    ///
    /// It resolves once the content of one such kind is cached, and never if no relation waits for content.
    pub(crate) async fn read_unread(&self) {
        let unread: Vec<_> = self
            .related
            .lock()
            .iter()
            .filter(|joined| joined.feed.unread() > 0)
            .map(|joined| (joined.relation.number(), joined.informer.clone()))
            .map(|(number, informer)| Box::pin(self.read(number, informer)))
            .collect();
        if unread.is_empty() {
            return std::future::pending().await;
        }
        // One is enough, as in `release_held`. The list of another kind may never come.
        drop(select_all(unread).await);
    }

    /// Waits for the content of a related kind, and replays the objects that lacked it.
    async fn read(&self, number: u64, informer: Informer) {
        // Not synced means that the kind is not served now. After that, an object may still lack its content: the
        // answer to a write had its metadata only.
        while !informer.content_synced().await || !self.replay(number) {
            time::sleep(MISSING_PERIOD).await;
        }
    }

    /// Replays the objects of a relation that can be read by now.
    ///
    /// Returns whether there were some, or none is left.
    fn replay(&self, number: u64) -> bool {
        let related = self.related.lock();
        let is_it = |joined: &&Joined| joined.relation.number() == number;
        related.iter().find(is_it).is_none_or(Joined::replay)
    }

    /// Returns the relations that call a handler and whose caches are not synced yet.
    pub(crate) fn unfilled(&self, handler: &str) -> Vec<u64> {
        let related = self.related.lock();
        let concerning: Vec<(u64, Read)> = related
            .iter()
            .filter(|joined| joined.relation.concerns(handler))
            .map(|joined| (joined.relation.number(), Read::by(joined)))
            .collect();
        drop(related);
        let unfilled = concerning.into_iter().filter(|(_, read)| !read.is_filled());
        unfilled.map(|(number, _)| number).collect()
    }

    /// Returns whether calls that need content wait for the upgrade of the watch.
    ///
    /// They wait without occupying a worker, so other handlers are called meanwhile.
    pub(crate) fn is_content_coming(&self) -> bool {
        let lasts = self.informer.upgrading_for();
        lasts.is_some_and(|lasts| lasts < UPGRADE_PATIENCE)
    }

    /// Waits until the caches of some handler are synced, and queues its keys.
    ///
    /// It never resolves if no handler waits.
    pub(crate) async fn release_held(&self) {
        let lanes = self.lanes.list();
        let waits = |lane: &&Arc<Lane>| self.queue.waits(lane.id()).awaits_caches;
        let held = lanes.iter().filter(waits);
        let released: Vec<_> = held.map(|lane| Box::pin(self.release(lane))).collect();
        if released.is_empty() {
            return std::future::pending().await;
        }
        // One is enough: the supervisor calls this method again for the others. Dropping their futures loses nothing,
        // because the keys wait in the queue.
        drop(select_all(released).await);
    }

    /// Waits for the caches of a handler, and queues the keys that waited for it.
    async fn release(&self, lane: &Arc<Lane>) {
        self.related_filled(lane).await;
        if lane.handler().needs_content() {
            self.content_settled().await;
        }
        self.open(lane);
    }

    /// Allows calls of a handler, and queues the keys that waited for it.
    pub(crate) fn open(&self, lane: &Lane) {
        lane.awaited().end();
        self.queue.open(lane.id(), WaitsFor::Caches);
    }

    /// Waits until the related caches of a handler are synced.
    ///
    /// A warning is logged after 30 seconds.
    async fn related_filled(&self, lane: &Arc<Lane>) {
        let mut unserved: HashMap<Gvk, Instant> = HashMap::new();
        while let Some(awaited) = lane.awaited().get() {
            let passed = awaited.since.elapsed();
            let mut is_awaited = |read: &Read| {
                let kind = read.informer.gvk();
                match read.informer.status().phase {
                    // Since the server has said so: before, it may not have answered.
                    Phase::Missing | Phase::Unwatchable => {
                        let since = unserved.entry(kind.clone()).or_insert_with(Instant::now);
                        since.elapsed() < MISSING_PATIENCE
                    }
                    _ => {
                        unserved.remove(kind);
                        !read.is_filled()
                    }
                }
            };
            let mut related = self.related_of(&awaited.numbers);
            related.retain(&mut is_awaited);
            let Some(read) = related.first() else {
                return;
            };
            if passed >= LONG && !awaited.is_warned {
                lane.awaited().set_warned();
                let error = read.informer.status().last_error;
                self.warn_of_wait(lane, read.informer.gvk(), error.as_deref());
            }
            // The timeout covers a relation that is removed meanwhile, and a kind that turns out not to be served.
            tokio::select! {
                true = read.filled() => {}
                () = time::sleep(MISSING_PERIOD) => {}
            }
        }
    }

    fn warn_of_wait(&self, lane: &Lane, related: &Gvk, error: Option<&str>) {
        tracing::warn!(
            kind = %self.informer.gvk(),
            handler = %lane.name(),
            %related,
            error,
            "handler waits for the cache of a related kind"
        );
    }

    /// Returns the informers of those relations that still exist.
    fn related_of(&self, numbers: &[u64]) -> Vec<Read> {
        let related = self.related.lock();
        let wanted = related
            .iter()
            .filter(|joined| numbers.contains(&joined.relation.number()));
        wanted.map(Read::by).collect()
    }

    /// Waits until the watch is upgraded to content, or the upgrade has taken too long.
    async fn content_settled(&self) {
        if let Some(lasts) = self.informer.upgrading_for() {
            let patience = UPGRADE_PATIENCE.saturating_sub(lasts);
            let _ = time::timeout(patience, self.informer.content_synced()).await;
        }
    }

    /// Returns the number of objects that wait for their content, with a bound.
    pub(super) fn unread(&self) -> (usize, usize) {
        let related = self.related.lock();
        let sizes = related.iter().map(|joined| {
            let bound = joined.informer.store().len();
            (joined.feed.unread(), bound)
        });
        super::pieces::sum(sizes)
    }

    /// Returns the numbers of joined relations and waiting owners, with a bound.
    pub(super) fn table_sizes(&self) -> (usize, (usize, usize)) {
        let related = self.related.lock();
        let aside = related.iter().map(|joined| joined.feed.aside());
        (related.len(), super::pieces::sum(aside))
    }
}

/// A related kind, as one relation reads it.
struct Read {
    informer: Informer,
    needs_content: bool,
}

impl Read {
    fn by(joined: &Joined) -> Self {
        Self {
            informer: joined.informer.clone(),
            needs_content: joined.relation.needs_content(),
        }
    }

    fn is_filled(&self) -> bool {
        let lacks_content = || self.needs_content && self.informer.is_upgrading();
        self.informer.status().phase == Phase::Synced && !lacks_content()
    }

    async fn filled(&self) -> bool {
        if self.needs_content {
            self.informer.content_synced().await
        } else {
            self.informer.synced().await
        }
    }
}
