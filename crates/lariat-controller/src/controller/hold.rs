//! Handlers that wait for caches: those of related kinds, and the content of their own.

use std::sync::Arc;
use std::time::Duration;

use futures::future::select_all;
use lariat_cache::{Informer, Phase};
use lariat_core::Gvk;
use tokio::time::{self, Instant};

use super::core::ControllerCore;
use crate::lane::Lane;

/// How long calls wait for a watch that is being upgraded to content, before objects are fetched one by one.
const UPGRADE_PATIENCE: Duration = Duration::from_secs(20);

/// How often a related kind that is not served is looked at again.
const MISSING_PERIOD: Duration = Duration::from_secs(1);

/// How long a handler waits for a related kind that is not served, before that counts as one without objects. API
/// servers do not know their custom resources for a while when they start.
const MISSING_PATIENCE: Duration = Duration::from_secs(30);

/// How long a handler waits before a warning is logged.
const LONG: Duration = Duration::from_secs(30);

impl ControllerCore {
    /// Returns the numbers of the relations that concern a handler and whose kinds are not filled now.
    pub(crate) fn unfilled_relations(&self, handler: &str) -> Vec<u64> {
        let related = self.related.lock();
        let concerning = related
            .iter()
            .filter(|joined| joined.relation.concerns(handler));
        let concerning: Vec<(u64, Informer)> = concerning
            .map(|joined| (joined.relation.number(), joined.informer().clone()))
            .collect();
        drop(related);
        let unfilled = concerning
            .into_iter()
            .filter(|(_, informer)| !is_filled(informer));
        unfilled.map(|(number, _)| number).collect()
    }

    /// Returns whether calls that need content should wait, because the watch is being upgraded to content. They wait
    /// without a worker, which other handlers need.
    pub(crate) fn is_content_coming(&self) -> bool {
        let mut since = self.content_awaited.lock();
        if !self.informer.is_upgrading() {
            *since = None;
            return false;
        }
        since.get_or_insert_with(Instant::now).elapsed() < UPGRADE_PATIENCE
    }

    /// Waits until a handler that waits for caches can be called, and queues its keys. Never ends if there is none.
    pub(crate) async fn release_held(&self) {
        let lanes = self.lanes().list();
        let held = lanes.iter().filter(|lane| lane.hold().is_waiting());
        let released: Vec<_> = held.map(|lane| Box::pin(self.release(lane))).collect();
        match released.is_empty() {
            true => std::future::pending().await,
            false => drop(select_all(released).await),
        }
    }

    /// Waits until a handler can be called, and queues its keys.
    async fn release(&self, lane: &Arc<Lane>) {
        self.related_filled(lane).await;
        if lane.handler().needs_content() {
            self.content_settled().await;
        }
        self.open(lane);
    }

    /// Lets a handler be called, and queues the keys that waited for it.
    pub(crate) fn open(&self, lane: &Lane) {
        for waiting in lane.hold().open() {
            self.queue_waiting(lane, Some(waiting));
        }
    }

    /// Waits until the related caches of a handler are filled, and warns if that takes long.
    async fn related_filled(&self, lane: &Arc<Lane>) {
        while let Some(closed) = lane.hold().closed() {
            let passed = closed.since.elapsed();
            let is_awaited = |informer: &Informer| match informer.status().phase {
                Phase::Synced => false,
                Phase::Missing => passed < MISSING_PATIENCE,
                _ => true,
            };
            let related = self.related_of(&closed.relations);
            let Some(informer) = related.into_iter().find(is_awaited) else {
                return;
            };
            if passed >= LONG && !closed.is_said {
                lane.hold().said();
                let error = informer.status().last_error;
                self.warn_of_wait(lane, informer.gvk(), error.as_deref());
            }
            // The relation may end meanwhile, and the kind may turn out not to be served.
            tokio::select! {
                true = informer.synced() => {}
                () = time::sleep(MISSING_PERIOD) => {}
            }
        }
    }

    fn warn_of_wait(&self, lane: &Lane, related: &Gvk, error: Option<&str>) {
        tracing::warn!(
            kind = %self.gvk(),
            handler = %lane.name(),
            %related,
            error,
            "a handler is not called before the cache of a related kind is filled"
        );
    }

    /// Returns the informers of relations, of those there still are.
    fn related_of(&self, numbers: &[u64]) -> Vec<Informer> {
        let related = self.related.lock();
        let wanted = related
            .iter()
            .filter(|joined| numbers.contains(&joined.relation.number()));
        wanted.map(|joined| joined.informer().clone()).collect()
    }

    /// Waits until the watch is upgraded to content, or its time is over.
    async fn content_settled(&self) {
        let Some(since) = *self.content_awaited.lock() else {
            return;
        };
        if let Ok(true) = time::timeout_at(since + UPGRADE_PATIENCE, self.informer.synced()).await {
            *self.content_awaited.lock() = None;
        }
    }
}

fn is_filled(informer: &Informer) -> bool {
    informer.status().phase == Phase::Synced
}
