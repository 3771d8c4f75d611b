//! Which keys of a kind this process handles, where a ring of processes divides them.

use std::sync::Arc;

use lariat_cache::CachedObject;
use lariat_core::Gvk;
use lariat_lease::{Permit, ShardKey, Shards, Share};
use lariat_queue::Add;
use tokio::sync::watch;

use super::core::ControllerCore;
use super::feed::Feed;
use super::run::Taken;

/// The part of a kind's keys that this process handles.
pub(crate) struct OwnKeys {
    gvk: Gvk,
    /// The ring that divides the keys of the kind; none if this process handles all of them.
    shards: Option<Shards>,
}

impl OwnKeys {
    pub(super) fn new(gvk: Gvk, shards: Option<Shards>) -> Self {
        shards.iter().for_each(|shards| shards.divide(&gvk));
        Self { gvk, shards }
    }

    /// Returns what tells objects of this process from those of other members of the ring.
    pub(super) fn filter(&self) -> impl Fn(&&Arc<CachedObject>) -> bool + use<> {
        let (gvk, share) = (self.gvk.clone(), self.shards.as_ref().map(Shards::share));
        move |object| {
            let is_in = |share: &Share| share.holds(ShardKey::of_object(&gvk, object));
            share.as_ref().is_none_or(is_in)
        }
    }

    /// Returns whether an object belongs to this process by its present state.
    pub(super) fn hold(&self, object: &CachedObject) -> bool {
        let key = || ShardKey::of_object(&self.gvk, object);
        let shards = self.shards.as_ref();
        shards.is_none_or(|shards| shards.share().holds(key()))
    }

    /// Returns the right to handle a key that was taken, if a ring divides the keys; none of it if the key belongs to
    /// another member.
    ///
    /// A key belongs where its object does, or did when it was deleted. Of one that was neither seen nor deleted nothing
    /// but the name is known.
    pub(super) fn permit(&self, core: &ControllerCore, taken: &Taken) -> Option<Option<Permit>> {
        let shards = self.shards.as_ref()?;
        let (gvk, key) = (&self.gvk, taken.key());
        let object = core.informer().store().get(key);
        let object = object.as_ref().or_else(|| taken.payload().last_deleted());
        Some(shards.enter(match object {
            Some(object) => ShardKey::of_object(gvk, object),
            None => ShardKey::of_key(gvk, key),
        }))
    }
}

/// The objects that come to this process when the ring changes.
pub(super) struct Gains {
    /// What shows the share; none without a ring.
    share: Option<watch::Receiver<Share>>,
    before: Share,
}

impl Gains {
    pub(super) fn new(core: &ControllerCore) -> Self {
        let mut share = core.own_keys().shards.as_ref().map(Shards::follow);
        // The present one is enqueued too: what came before this process had a share was not.
        share.iter_mut().for_each(watch::Receiver::mark_changed);
        Self {
            share,
            before: Share::none(),
        }
    }

    /// Waits for another share, and enqueues what it gains.
    pub(super) async fn enqueued(&mut self, core: &ControllerCore) {
        let Some(follow) = &mut self.share else {
            return std::future::pending().await;
        };
        if follow.changed().await.is_err() {
            return std::future::pending().await;
        }
        let share = follow.borrow_and_update().clone();
        enqueue_gained(core, &self.before, &share);
        self.before = share;
    }
}

/// Enqueues the objects that a new share holds and the one before did not, as if they had just come into sight.
fn enqueue_gained(core: &ControllerCore, before: &Share, share: &Share) {
    let (gvk, lanes) = (core.gvk(), core.lanes().list());
    let snapshot = core.informer().store().snapshot();
    let gained = snapshot.iter().filter(|object| {
        let key = ShardKey::of_object(gvk, object);
        share.holds(key) && !before.holds(key)
    });
    core.add_in_pieces(gained.filter_map(|object| {
        let change = Feed::initial(object);
        let (due, priority) = lanes.due(&change);
        let add = Add::now().lanes(due.clone()).priority(priority);
        let add = add.payload(change.cause().into());
        (!due.is_empty()).then(|| (object.key().clone(), add))
    }));
}
