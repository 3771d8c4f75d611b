//! Which keys of a kind this process handles, where a ring of processes divides them.

use std::sync::Arc;

use lariat_cache::{CachedObject, Store};
use lariat_core::Gvk;
use lariat_lease::{Permit, ShardKey, Shards, Share};
use tokio::sync::watch;

use crate::payload::Taken;

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

    /// Returns what distinguishes objects of this process from those of other members of the ring.
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

    /// Returns what shows the share as it changes; none without a ring.
    pub(super) fn follow(&self) -> Option<watch::Receiver<Share>> {
        self.shards.as_ref().map(Shards::follow)
    }

    /// Returns the right to handle a key that was taken, if a ring divides the keys; none of it if the key belongs to
    /// another member.
    ///
    /// A key belongs where its object does, or did when it was deleted. Of one that was neither seen nor deleted nothing
    /// but the name is known.
    pub(super) fn permit(&self, store: &Store, taken: &Taken) -> Option<Option<Permit>> {
        let shards = self.shards.as_ref()?;
        let (gvk, key) = (&self.gvk, taken.key());
        let object = store.get(key);
        let object = object.as_ref().or_else(|| taken.payload().last_deleted());
        Some(shards.enter(match object {
            Some(object) => ShardKey::of_object(gvk, object),
            None => ShardKey::of_key(gvk, key),
        }))
    }
}
