//! The other kinds a controller has to do with.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Informer, Phase};
use tokio::time;

use super::core::ControllerCore;
use crate::related::{AnyRelation, Enqueuer, Joined};

/// How often a related kind that is not served is looked at again.
const MISSING_PERIOD: Duration = Duration::from_secs(1);

impl ControllerCore {
    /// Begins to enqueue keys for changes of another kind.
    pub(crate) fn relate(&self, relation: &Arc<dyn AnyRelation>) {
        let is_it = |joined: &Joined| joined.relation.number() == relation.number();
        if self.related.lock().iter().any(is_it) {
            return;
        }
        let joined = Arc::clone(relation).join(Enqueuer {
            client: Arc::clone(self.informer.client()),
            queue: self.queue.clone(),
            lanes: Arc::clone(&self.lanes),
            watchman: Arc::clone(self.watchman()),
        });
        let mut related = self.related.lock();
        // Somebody else may have done so meanwhile.
        if related.iter().any(is_it) {
            drop(related);
            return drop(joined);
        }
        related.push(joined);
        drop(related);
        self.lanes.tell();
    }

    pub(crate) fn unrelate_all(&self) {
        let related = std::mem::take(&mut *self.related.lock());
        drop(related);
    }

    pub(crate) fn unrelate(&self, number: u64) {
        let mut related = self.related.lock();
        let ended: Vec<Joined> = related
            .extract_if(.., |each| each.relation.number() == number)
            .collect();
        drop(related);
        // Subscriptions are dropped behind the lock.
        drop(ended);
    }

    /// Waits until the cache of the kind and those of related kinds are filled; `false` if some kind is not
    /// served and not waited for.
    pub(crate) async fn synced(&self) -> bool {
        let related: Vec<Informer> = self
            .related
            .lock()
            .iter()
            .map(|joined| joined.informer().clone())
            .collect();
        for informer in related.iter().chain([&self.informer]) {
            if !informer.synced().await {
                return false;
            }
        }
        true
    }

    /// Returns whether the cache of the kind and those of related kinds are filled now.
    pub(crate) fn is_synced(&self) -> bool {
        let related = self.related.lock();
        let informers = related.iter().map(Joined::informer).chain([&self.informer]);
        let phases = informers.map(|informer| informer.status().phase);
        phases.into_iter().all(|phase| phase == Phase::Synced)
    }

    /// Enqueues owners that were set aside because it was not known whether the kind has namespaces. To be called once
    /// the cache of the kind is filled, when that is known if it ever will be.
    pub(crate) fn place_owners(&self) {
        self.related.lock().iter().for_each(Joined::place_owners);
    }

    /// Tells related objects again whose content was not there when they were told first. Ends once it is, or
    /// never if there are none.
    pub(crate) async fn read_unread(&self) {
        let unread: Vec<(u64, Informer)> = self
            .related
            .lock()
            .iter()
            .filter(|joined| joined.has_unread())
            .map(|joined| (joined.relation.number(), joined.informer().clone()))
            .collect();
        if unread.is_empty() {
            return std::future::pending().await;
        }
        for (number, informer) in unread {
            // A kind that is not served is looked at again when it is.
            if !informer.synced().await {
                time::sleep(MISSING_PERIOD).await;
                continue;
            }
            let related = self.related.lock();
            let is_it = |joined: &&Joined| joined.relation.number() == number;
            if let Some(joined) = related.iter().find(is_it) {
                joined.replay();
            }
        }
    }
}
