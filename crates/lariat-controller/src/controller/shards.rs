//! The share of a kind's keys that belongs to this process, if a ring divides them.

use std::sync::Arc;

use lariat_cache::{CachedObject, Informer, Store};
use lariat_core::Gvk;
use lariat_lease::{Permit, ShardKey, Shards, Share, WantedValues};
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
        Self { gvk, shards }
    }

    /// Declares the kind as divided, and narrows its watch if a label divides it.
    pub(super) fn declare(&self, informer: &Informer) {
        if let Some(shards) = &self.shards {
            shards.shard_kind(&self.gvk);
            narrow(informer, shards);
        }
    }

    /// Returns a predicate for the objects that belong to this process.
    pub(super) fn filter(&self) -> impl Fn(&&Arc<CachedObject>) -> bool + use<> {
        let (gvk, shards) = (self.gvk.clone(), self.shards.clone());
        // Read once, so that all objects of a replay are judged by the same share.
        let share = shards.as_ref().map(|shards| shards.share_of(&gvk));
        move |object| match (&shards, &share) {
            (Some(shards), Some(share)) => {
                let key = shards.key_of(&gvk, object);
                key.is_some_and(|key| share.holds(key))
            }
            _ => true,
        }
    }

    /// Returns whether an object belongs to this process in the given state.
    pub(super) fn hold(&self, object: &CachedObject) -> bool {
        let holds = |shards: &Shards| {
            let key = shards.key_of(&self.gvk, object);
            key.is_some_and(|key| shards.share_of(&self.gvk).holds(key))
        };
        self.shards.as_ref().is_none_or(holds)
    }

    /// Returns whether a dequeued key may be processed.
    ///
    /// A key belongs to the member that its object belongs to, in its present or last deleted state. If neither is
    /// known, the name alone decides; if a label divides the objects, such a key belongs to no member.
    pub(super) fn permit(&self, store: &Store, taken: &Taken) -> KeyPermit {
        let Some(shards) = &self.shards else {
            return KeyPermit::NotSharded;
        };
        let (gvk, key) = (&self.gvk, taken.key());
        let known = store.get(key);
        let object = known.as_ref().or_else(|| taken.payload().last_deleted());
        let key = match object {
            Some(object) => shards.key_of(gvk, object),
            None if shards.has_label() => None,
            None => Some(ShardKey::of_key(gvk, key)),
        };
        let own = key.filter(|key| shards.share_of(gvk).holds(*key));
        // `enter` asks again, under the gate's lock: the share may have become smaller since it was read.
        let permit = own.and_then(|key| shards.enter(key));
        permit.map_or(KeyPermit::Foreign, KeyPermit::Held)
    }

    /// Returns a follower of the share; none without a ring.
    pub(super) fn follow(&self) -> Option<Follower> {
        self.shards
            .as_ref()
            .map(|shards| Follower::new(self.gvk.clone(), shards.clone()))
    }
}

/// Whether this process may handle a key.
pub(super) enum KeyPermit {
    /// There is no ring.
    NotSharded,
    /// It may, until the permit is revoked.
    Held(Permit),
    /// The key belongs to another member, or to none.
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

/// Narrows a watch to the values of the label that this process should cache.
///
/// Returns these values; none without a label.
fn narrow(informer: &Informer, shards: &Shards) -> Option<WantedValues> {
    let values = shards.wanted()?;
    informer.narrow(values.selector().clone());
    Some(values)
}

/// Follows the share of a kind, and reports what it gains.
///
/// If a label divides the kind, it also widens the watch, and tells the ring which values are cached.
pub(super) struct Follower {
    gvk: Gvk,
    shards: Shards,
    share: watch::Receiver<Share>,
    content: watch::Receiver<u64>,
    reports: watch::Receiver<u64>,
    /// The values of the label that the cache is being filled with.
    unread: Option<WantedValues>,
    /// The share whose objects were enqueued.
    known: Share,
}

/// The keys that a share has gained: those in the new share that were not in both old ones.
pub(super) struct Gain {
    gvk: Gvk,
    shards: Shards,
    /// The share when it was last followed, and the share just before a fill was noted.
    before: (Share, Share),
    now: Share,
}

impl Follower {
    fn new(gvk: Gvk, shards: Shards) -> Self {
        let (mut share, mut content) = (shards.follow(), shards.content_changes());
        // The current share counts as gained. `Feed` has queued nothing of it: it drops keys outside the share, and the
        // share was empty before this process joined.
        share.mark_changed();
        content.mark_changed();
        let reports = shards.cache_reports();
        if shards.has_label() {
            shards.register_kind(&gvk);
        }
        Self {
            gvk,
            shards,
            share,
            content,
            reports,
            unread: None,
            known: Share::none(),
        }
    }

    /// Waits for a change of the share; returns what it has gained.
    ///
    /// It is cancel safe: the state changes only in the poll that returns.
    pub(super) async fn gained(&mut self, informer: &Informer) -> Gain {
        let mut until = None;
        loop {
            tokio::select! {
                biased;
                // Without a label there is nothing to fill.
                Ok(()) = self.content.changed() => self.unread = narrow(informer, &self.shards),
                // Also if the kind is not served: then it has no objects, and all of them are cached.
                _ = informer.synced(), if self.unread.is_some() => {
                    // A value may have been lost and gained again while the cache was filled. Changes in between were
                    // not queued. `known` still has the value, this share does not.
                    until = Some(self.shards.share_of(&self.gvk));
                    if let Some(values) = self.unread.take() {
                        self.shards.report_cached(&self.gvk, &values);
                    }
                    break;
                }
                Ok(()) = self.share.changed() => break,
                Ok(()) = self.reports.changed() => break,
                else => std::future::pending().await,
            }
        }
        let now = self.shards.share_of(&self.gvk);
        let before = std::mem::replace(&mut self.known, now.clone());
        let until = until.unwrap_or_else(|| before.clone());
        Gain {
            gvk: self.gvk.clone(),
            shards: self.shards.clone(),
            before: (before, until),
            now,
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if self.shards.has_label() {
            self.shards.deregister_kind(&self.gvk);
        }
    }
}

impl Gain {
    /// Returns whether the share has gained an object.
    pub(super) fn holds(&self, object: &CachedObject) -> bool {
        let Some(key) = self.shards.key_of(&self.gvk, object) else {
            return false;
        };
        let (before, until) = &self.before;
        self.now.holds(key) && !(before.holds(key) && until.holds(key))
    }
}
