//! The keys of a kind that belong to this process, if a ring divides them.

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
    /// Divides the keys of an informer's kind, and with a label what it watches.
    pub(super) fn new(informer: &Informer, shards: Option<Shards>) -> Self {
        let gvk = informer.gvk().clone();
        if let Some(shards) = &shards {
            shards.divide(&gvk);
            narrow(informer, shards);
        }
        Self { gvk, shards }
    }

    /// Returns a predicate for the objects that belong to this process.
    pub(super) fn filter(&self) -> impl Fn(&&Arc<CachedObject>) -> bool + use<> {
        let (gvk, shards) = (self.gvk.clone(), self.shards.clone());
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

    /// Returns the permit to process a dequeued key; none without a ring.
    ///
    /// The inner option is none if the key belongs to another member.
    ///
    /// A key belongs to the member of its object, or of its last deleted state. Without either, only the name decides;
    /// if a label divides the objects, such a key belongs to no member.
    pub(super) fn permit(&self, store: &Store, taken: &Taken) -> Option<Option<Permit>> {
        let shards = self.shards.as_ref()?;
        let (gvk, key) = (&self.gvk, taken.key());
        let known = store.get(key);
        let object = known.as_ref().or_else(|| taken.payload().last_deleted());
        let key = match object {
            Some(object) => shards.key_of(gvk, object),
            None if shards.has_label() => None,
            None => Some(ShardKey::of_key(gvk, key)),
        };
        let own = key.filter(|key| shards.share_of(gvk).holds(*key));
        Some(own.and_then(|key| shards.enter(key)))
    }

    /// Follows the share; none without a ring.
    pub(super) fn follow(&self) -> Option<Follower> {
        self.shards
            .as_ref()
            .map(|shards| Follower::new(self.gvk.clone(), shards.clone()))
    }
}

/// Limits what an informer watches to the values of a label that this process should cache; none without a label.
fn narrow(informer: &Informer, shards: &Shards) -> Option<WantedValues> {
    let values = shards.wanted()?;
    informer.narrow(values.selector().clone());
    Some(values)
}

/// Follows the share of a kind and, if a label divides it, has the cache filled with what it gains.
pub(super) struct Follower {
    gvk: Gvk,
    shards: Shards,
    share: watch::Receiver<Share>,
    content: watch::Receiver<u64>,
    fills: watch::Receiver<u64>,
    /// The values of the label that the cache is being filled with.
    unread: Option<WantedValues>,
    /// The share whose objects were enqueued.
    known: Share,
}

/// What a share has gained: objects that are in the new share, and were not in both old ones.
pub(super) struct Gain {
    gvk: Gvk,
    shards: Shards,
    /// The share before, as it was last followed and as it was until a fill.
    before: (Share, Share),
    now: Share,
}

impl Follower {
    fn new(gvk: Gvk, shards: Shards) -> Self {
        let (mut share, mut content) = (shards.follow(), shards.content_changes());
        // The current share counts as gained: changes before this process had a share were not queued.
        share.mark_changed();
        content.mark_changed();
        let fills = shards.fills();
        if shards.has_label() {
            shards.begin_filling(&gvk);
        }
        Self {
            gvk,
            shards,
            share,
            content,
            fills,
            unread: None,
            known: Share::none(),
        }
    }

    /// Waits for a change of the share; returns what it has gained.
    ///
    /// Dropping the future loses nothing.
    pub(super) async fn gained(&mut self, informer: &Informer) -> Gain {
        let mut until = None;
        loop {
            tokio::select! {
                biased;
                // Without a label there is nothing to fill.
                Ok(()) = self.content.changed() => self.unread = narrow(informer, &self.shards),
                // A kind that is not served has no objects.
                _ = informer.synced(), if self.unread.is_some() => {
                    // A value that was lost and gained since was not followed meanwhile: it is not in this share.
                    until = Some(self.shards.share_of(&self.gvk));
                    if let Some(values) = self.unread.take() {
                        self.shards.note_filled(&self.gvk, &values);
                    }
                    break;
                }
                Ok(()) = self.share.changed() => break,
                Ok(()) = self.fills.changed() => break,
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
            self.shards.end_filling(&self.gvk);
        }
    }
}

impl Gain {
    pub(super) fn holds(&self, object: &CachedObject) -> bool {
        let Some(key) = self.shards.key_of(&self.gvk, object) else {
            return false;
        };
        let (before, until) = &self.before;
        self.now.holds(key) && !(before.holds(key) && until.holds(key))
    }
}
