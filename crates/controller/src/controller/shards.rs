//! The share of a kind's keys that belongs to this process, if a ring divides them.

use std::sync::Arc;

use lariat_cache::{CachedObject, Store};
use lariat_core::{Gvk, ObjectMetadata};
use lariat_lease::{Gained, Gains, Permit, ShardKey, Shards, Share};

use crate::payload::Taken;

/// The part of a kind's keys that belongs to this process.
pub(crate) struct OwnKeys {
    gvk: Gvk,
    /// The ring that divides the keys; none if this process handles all of them.
    shards: Option<Shards>,
}

impl OwnKeys {
    pub(super) fn new(gvk: Gvk, shards: Option<Shards>) -> Self {
        Self { gvk, shards }
    }

    /// Declares the kind as divided, and follows what its share gains from now on.
    ///
    /// Each use of the kind has a follower, which begins before its changes are queued.
    pub(super) fn follow(&self) -> Follower {
        let shards = self.shards.as_ref();
        let shards = shards.inspect(|shards| shards.shard_kind(&self.gvk));
        Follower {
            gvk: self.gvk.clone(),
            gains: shards.map(Shards::gains),
        }
    }

    /// Returns a predicate for the objects that belong to this process.
    pub(super) fn filter(&self) -> impl Fn(&&Arc<CachedObject>) -> bool + use<> {
        let own = OwnObjects::new(&self.gvk, self.shards.as_ref());
        move |object| own.hold(object)
    }

    /// Returns whether an object belongs to this process in the given state.
    pub(super) fn hold(&self, object: &CachedObject) -> bool {
        OwnObjects::new(&self.gvk, self.shards.as_ref()).hold(object)
    }

    /// Admits a run for a dequeued key; none if the key belongs to another member, or this process is none.
    ///
    /// A key belongs to the member that its object belongs to, in its present or last deleted state. If neither is
    /// known, the name alone decides.
    pub(super) fn permit(&self, store: &Store, taken: &Taken) -> Option<RunPermit<'_>> {
        let Some(shards) = &self.shards else {
            return Some(RunPermit {
                gvk: &self.gvk,
                permit: None,
            });
        };
        let (gvk, key) = (&self.gvk, taken.key());
        let known = store.get(key);
        let object = known.as_ref().or_else(|| taken.payload().last_deleted());
        let key = match object {
            Some(object) => ShardKey::of_object(gvk, object),
            None => ShardKey::of_key(gvk, key),
        };
        let permit = Some(shards.enter(key)?);
        Some(RunPermit { gvk, permit })
    }
}

/// Follows what the share of a kind gains.
pub(super) struct Follower {
    gvk: Gvk,
    /// None without a ring.
    gains: Option<Gains>,
}

impl Follower {
    /// Waits until the share gains keys, and returns them; never without a ring.
    ///
    /// The caller enqueues them before it waits for anything else. Dropping the future loses nothing.
    pub(super) async fn gained(&self) -> Gain {
        let Some(gains) = &self.gains else {
            return std::future::pending().await;
        };
        let (gvk, keys) = (self.gvk.clone(), gains.next().await);
        Gain { gvk, keys }
    }
}

/// The objects of a kind that belong to this process, at one moment.
pub(super) struct OwnObjects {
    gvk: Gvk,
    /// The share; none if this process handles all objects.
    share: Option<Share>,
}

impl OwnObjects {
    /// Reads the share once, so that all objects are judged by the same one.
    pub(super) fn new(gvk: &Gvk, shards: Option<&Shards>) -> Self {
        Self {
            gvk: gvk.clone(),
            share: shards.map(Shards::share),
        }
    }

    /// Returns whether an object belongs to this process.
    pub(super) fn hold(&self, object: &ObjectMetadata) -> bool {
        let holds = |share: &Share| share.holds(ShardKey::of_object(&self.gvk, object));
        self.share.as_ref().is_none_or(holds)
    }
}

/// The objects that the share of this process has gained.
pub(super) struct Gain {
    gvk: Gvk,
    keys: Gained,
}

impl Gain {
    /// Returns whether an object was gained.
    pub(super) fn holds(&self, object: &ObjectMetadata) -> bool {
        self.keys.holds(ShardKey::of_object(&self.gvk, object))
    }
}

/// The permission of this process to handle a key in one run.
pub(super) struct RunPermit<'a> {
    gvk: &'a Gvk,
    /// None without a ring.
    permit: Option<Permit>,
}

impl RunPermit<'_> {
    /// Returns whether the run may call a handler with a state of the object.
    ///
    /// The state may be newer than the one by which the run was admitted, and have another controlling owner. If that
    /// is another member's, so is the state; else it is handed over after the run, like the first one.
    pub(super) fn admits(&self, object: &ObjectMetadata) -> bool {
        let extend = |permit: &Permit| permit.extend(ShardKey::of_object(self.gvk, object));
        self.permit.as_ref().is_none_or(extend)
    }

    /// Waits until the permission is revoked; never without a ring.
    pub(super) async fn revoked(&self) {
        match &self.permit {
            Some(permit) => permit.revoked().await,
            None => std::future::pending().await,
        }
    }
}
