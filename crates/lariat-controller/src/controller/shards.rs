//! The keys of a kind that belong to this process, if a ring divides them.

use std::sync::Arc;

use lariat_cache::{CachedObject, Store};
use lariat_core::Gvk;
use lariat_lease::{Permit, ShardKey, Shards, Share};
use tokio::sync::watch;

use crate::payload::Taken;

/// The part of a kind's keys that belongs to this process.
pub(crate) struct OwnKeys {
    gvk: Gvk,
    /// The ring that divides the keys; none if this process handles all of them.
    shards: Option<Shards>,
}

impl OwnKeys {
    pub(super) fn new(gvk: Gvk, shards: Option<Shards>) -> Self {
        shards.iter().for_each(|shards| shards.divide(&gvk));
        Self { gvk, shards }
    }

    /// Returns a predicate for the objects that belong to this process.
    pub(super) fn filter(&self) -> impl Fn(&&Arc<CachedObject>) -> bool + use<> {
        let (gvk, share) = (self.gvk.clone(), self.shards.as_ref().map(Shards::share));
        move |object| {
            let is_in = |share: &Share| share.holds(ShardKey::of_object(&gvk, object));
            share.as_ref().is_none_or(is_in)
        }
    }

    /// Returns whether an object belongs to this process in the given state.
    pub(super) fn hold(&self, object: &CachedObject) -> bool {
        let key = || ShardKey::of_object(&self.gvk, object);
        let shards = self.shards.as_ref();
        shards.is_none_or(|shards| shards.share().holds(key()))
    }

    /// Returns a receiver of the share; none without a ring.
    pub(super) fn follow(&self) -> Option<watch::Receiver<Share>> {
        self.shards.as_ref().map(Shards::follow)
    }

    /// Returns the permit to process a dequeued key; none without a ring.
    ///
    /// The inner option is none if the key belongs to another member.
    ///
    /// A key belongs to the member of its object, or of its last deleted state. Without either, only the name decides.
    pub(super) fn permit(&self, store: &Store, taken: &Taken) -> Option<Option<Permit>> {
        let shards = self.shards.as_ref()?;
        let (gvk, key) = (&self.gvk, taken.key());
        let known = store.get(key);
        let object = known.as_ref().or_else(|| taken.payload().last_deleted());
        Some(shards.enter(match object {
            Some(object) => ShardKey::of_object(gvk, object),
            None => ShardKey::of_key(gvk, key),
        }))
    }
}
