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

    /// Returns whether a dequeued key may be processed.
    ///
    /// A key belongs to the member that its object belongs to, in its present or last deleted state. If neither is
    /// known, the name alone decides.
    pub(super) fn permit(&self, store: &Store, taken: &Taken) -> KeyPermit {
        let Some(shards) = &self.shards else {
            return KeyPermit::NotSharded;
        };
        let (gvk, key) = (&self.gvk, taken.key());
        let known = store.get(key);
        let object = known.as_ref().or_else(|| taken.payload().last_deleted());
        let key = match object {
            Some(object) => ShardKey::of_object(gvk, object),
            None => ShardKey::of_key(gvk, key),
        };
        shards
            .enter(key)
            .map_or(KeyPermit::Foreign, KeyPermit::Held)
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

/// Whether this process may handle a key.
pub(super) enum KeyPermit {
    /// There is no ring.
    NotSharded,
    /// It may, until the permit is revoked.
    Held(Permit),
    /// The key belongs to another member, or this process is none.
    Foreign,
}

impl KeyPermit {
    /// Waits until the permit is revoked; never without a ring.
    pub(super) async fn revoked(&self) {
        match self {
            Self::Held(permit) => permit.revoked().await,
            Self::NotSharded | Self::Foreign => std::future::pending().await,
        }
    }
}
