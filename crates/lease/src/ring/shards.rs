//! The share of a process in a ring, as the rest of the program sees it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::{fmt, mem};

use lariat_core::{Gvk, ObjectMetadata, OwnerRef};
use parking_lot::RwLock;
use tokio::sync::watch;

use super::gains::Gains;
use super::gate::{Gate, Permit};
use super::share::{ShardKey, Share};
use crate::leadership::Leadership;

/// The share of this process in a ring; clones share one state.
///
/// The share is empty until the process has joined, and after it has left or lost its lease.
///
/// Controllers use it in three ways: [`enter`](Self::enter) admits a call for a key, [`gains`](Self::gains) tells which
/// keys to enqueue, and [`caches_content`](Self::caches_content) selects which objects to cache with content.
///
/// ```no_run
/// use lariat::lease::{ShardKey, Shards};
/// use lariat::{Gvk, ObjectKey};
///
/// # fn example(shards: &Shards) {
/// let key = ShardKey::of_key(&Gvk::new("", "v1", "Pod"), &ObjectKey::namespaced("shop", "web-0"));
/// if let Some(_permit) = shards.enter(key) {
///     // No other process handles the key until the permit is dropped.
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Shards {
    /// The shared state.
    inner: Arc<Inner>,
}

/// The state that clones share.
struct Inner {
    /// Whether this process is a member.
    leadership: Leadership,
    /// Admits calls.
    gate: Gate,
    /// The shares whose objects are cached.
    content: RwLock<Content>,
    /// The kinds whose keys are handled by members.
    divided: RwLock<BTreeSet<Gvk>>,
    /// Changes when `content` does, except when it shrinks with calls still running.
    content_changes: watch::Sender<u64>,
}

/// The shares whose objects are cached.
struct Content {
    /// The current share, or the one that this process will have once it has joined.
    share: Share,
    /// Earlier shares, while calls for keys that they lost may be running.
    ///
    /// There are several if the members change again before the calls have ended.
    draining: Vec<Share>,
}

impl Content {
    /// Returns whether a key is in one of the shares.
    fn holds(&self, key: ShardKey) -> bool {
        self.share.holds(key) || self.draining.iter().any(|share| share.holds(key))
    }
}

impl Shards {
    /// Creates an empty share.
    pub(super) fn new(leadership: Leadership) -> Self {
        let content = Content {
            share: Share::none(),
            draining: Vec::new(),
        };
        Self {
            inner: Arc::new(Inner {
                leadership,
                gate: Gate::new(),
                content: RwLock::new(content),
                divided: RwLock::default(),
                content_changes: watch::Sender::new(0),
            }),
        }
    }

    /// Returns the share that this process handles.
    #[must_use]
    pub fn share(&self) -> Share {
        self.inner.gate.share()
    }

    /// Returns a receiver of the share and its changes.
    ///
    /// It shows the latest share only. A key that leaves the share and comes back between two looks does not show:
    /// [`gains`](Self::gains) tells it too.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Share> {
        self.inner.gate.follow()
    }

    /// Returns a follower of the keys that the share gains from now on.
    #[must_use]
    pub fn gains(&self) -> Gains {
        Gains::new(self.inner.gate.clone())
    }

    /// Admits a call for a key; `None` if the key belongs to another process.
    ///
    /// While the permit exists, no other process handles the key. Drop it when the work has ended, and soon after
    /// [`Permit::revoked`] resolves.
    ///
    /// ```no_run
    /// use lariat::lease::{ShardKey, Shards};
    ///
    /// # async fn example(shards: &Shards, key: ShardKey, work: impl Future<Output = ()>) {
    /// if let Some(permit) = shards.enter(key) {
    ///     tokio::select! {
    ///         () = work => {}
    ///         () = permit.revoked() => {}
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn enter(&self, key: ShardKey) -> Option<Permit> {
        // After a suspension the gate may still be open although the time of the lease has ended. The leadership
        // compares with the clock.
        let is_member = self.inner.leadership.leads();
        is_member.then(|| self.inner.gate.enter(key)).flatten()
    }

    /// Declares that the keys of a kind are divided among the members.
    pub fn shard_kind(&self, gvk: &Gvk) {
        self.inner.divided.write().insert(gvk.clone());
    }

    /// Returns whether this process should cache the content of an object.
    ///
    /// It should for the share it has, will have once it has joined, or is about to hand over. Objects that no member
    /// handles are cached by all members: those of kinds that are not [divided](Self::shard_kind), if they have no
    /// controlling owner.
    #[must_use]
    pub fn caches_content(&self, gvk: &Gvk, object: &ObjectMetadata) -> bool {
        let is_controlled = || object.owners().iter().any(OwnerRef::is_controller);
        if !self.inner.divided.read().contains(gvk) && !is_controlled() {
            return true;
        }
        let key = ShardKey::of_object(gvk, object);
        self.inner.content.read().holds(key)
    }

    /// Returns a receiver that changes whenever [`caches_content`](Self::caches_content) may change.
    #[must_use]
    pub fn content_changes(&self) -> watch::Receiver<u64> {
        self.inner.content_changes.subscribe()
    }

    /// Returns the gate that admits calls.
    pub(super) fn gate(&self) -> &Gate {
        &self.inner.gate
    }

    /// Sets the share whose objects are cached.
    ///
    /// The objects of lost keys stay cached until [`drop_lost`](Self::drop_lost).
    pub(super) fn keep(&self, share: &Share) {
        let mut content = self.inner.content.write();
        let before = mem::replace(&mut content.share, share.clone());
        let grows = !share.is_within(&before);
        // Running calls for lost keys still read their objects, so these must not leave the caches yet. Those of an
        // earlier change may be running too. In another term the member has another name, and no call is running.
        content.draining.push(before);
        content
            .draining
            .retain(|each| each.is_of_member_of(share) && !each.is_within(share));
        drop(content);
        // A share that shrinks changes nothing before its calls have ended: see `drop_lost`.
        if grows {
            self.inner.content_changes.send_modify(|count| *count += 1);
        }
    }

    /// Limits the cached objects to those of the current share.
    pub(super) fn drop_lost(&self) {
        let mut content = self.inner.content.write();
        // Nothing was lost, so the caches need not be searched.
        if content.draining.is_empty() {
            return;
        }
        content.draining.clear();
        drop(content);
        self.inner.content_changes.send_modify(|count| *count += 1);
    }

    /// Stops admitting calls.
    pub(super) fn end(&self) {
        self.inner.gate.set(&Share::none());
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shards")
            .field("share", &self.share())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lariat_core::{ObjectKey, RawObject};
    use tokio::time::Instant;

    use super::*;

    fn shards() -> Shards {
        let second = Duration::from_secs(1);
        Shards::new(Leadership::new("shops", "shop", "me".into(), second))
    }

    fn keys() -> impl Iterator<Item = ShardKey> {
        let key = |number| ObjectKey::cluster(&format!("order-{number}"));
        (0..60).map(move |number| ShardKey::of_key(&Gvk::new("", "v1", "Order"), &key(number)))
    }

    /// Returns the keys whose objects are cached.
    fn cached(shards: &Shards) -> Vec<ShardKey> {
        let content = shards.inner.content.read();
        keys().filter(|key| content.holds(*key)).collect()
    }

    fn held(share: &Share) -> Vec<ShardKey> {
        keys().filter(|key| share.holds(*key)).collect()
    }

    #[test]
    fn content_of_lost_keys_stays_cached_while_members_change_again() {
        let shards = shards();
        let all: Vec<_> = keys().collect();
        shards.keep(&Share::of("me", []));
        assert_eq!(cached(&shards), all);
        shards.keep(&Share::of("me", ["b"]));
        assert_eq!(cached(&shards), all, "calls for keys of b may be running");
        shards.keep(&Share::of("me", ["b", "c"]));
        assert_eq!(cached(&shards), all, "and for keys of c");
        shards.keep(&Share::of("me", ["c"]));
        assert_eq!(cached(&shards), all, "and for keys of b still");
        shards.drop_lost();
        let both = held(&Share::of("me", ["c"]));
        assert_eq!(cached(&shards), both);
        // A key that was lost and has come back is no longer lost.
        shards.keep(&Share::of("me", ["c", "d"]));
        shards.keep(&Share::of("me", ["c"]));
        assert_eq!(cached(&shards), both);
        assert_eq!(shards.inner.content.read().draining, []);
        shards.keep(&Share::of("me-again", ["c", "d"]));
        assert_eq!(shards.inner.content.read().draining, [], "another term");
    }

    /// Returns the metadata of an object, and of one that another object controls.
    fn objects(kind: &Gvk) -> [ObjectMetadata; 2] {
        let owner = r#"{"apiVersion":"v1","kind":"Order","name":"o","uid":"u","controller":true}"#;
        ["", owner].map(|owner| {
            let json = format!(r#"{{"metadata":{{"name":"a","ownerReferences":[{owner}]}}}}"#);
            let object = RawObject::parse(json.as_bytes(), kind).expect("it has a name");
            object.into_parts().0
        })
    }

    #[test]
    fn shards_cache_content_of_objects_that_no_member_handles() {
        let (shards, kind) = (shards(), Gvk::new("", "v1", "Secret"));
        let cached = || objects(&kind).map(|object| shards.caches_content(&kind, &object));
        assert_eq!(cached(), [true, false]);
        shards.shard_kind(&kind);
        assert_eq!(cached(), [false, false]);
        shards.keep(&Share::of("me", []));
        assert_eq!(cached(), [true, true]);
    }

    #[test]
    fn member_that_has_ended_admits_no_call() {
        let shards = shards();
        let deadline = Instant::now() + Duration::from_secs(60);
        shards
            .inner
            .leadership
            .renewed(1, Instant::now(), deadline, 0);
        shards.gate().set(&Share::of("me", []));
        assert!(keys().all(|key| shards.enter(key).is_some()));
        shards.end();
        assert!(keys().all(|key| shards.enter(key).is_none()));
    }

    #[test]
    fn caches_are_told_of_gains_and_of_losses_once_drained() {
        let shards = shards();
        let mut changes = shards.content_changes();
        let mut is_told = || {
            changes.has_changed().expect("it lives") && {
                changes.mark_unchanged();
                true
            }
        };
        shards.keep(&Share::of("me", []));
        assert!(is_told());
        shards.keep(&Share::of("me", ["b"]));
        assert!(!is_told(), "calls for the lost keys may be running");
        shards.drop_lost();
        assert!(is_told());
        shards.drop_lost();
        assert!(!is_told(), "nothing was lost since");
    }
}
