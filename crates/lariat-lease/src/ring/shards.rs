//! The share of a process in a ring, as the rest of the program sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::{fmt, mem};

use lariat_core::{Gvk, LabelSelector, ObjectMetadata, OwnerRef};
use parking_lot::RwLock;
use tokio::sync::watch;

use super::gate::{Gate, Permit};
use super::label::ShardLabel;
use super::share::{ShardKey, Share};
use crate::leadership::Leadership;

/// The share of this process in a ring; clones share one state.
///
/// The share is empty until the process has joined, and after it has left or lost its lease.
///
/// Controllers use it in three ways: [`enter`](Self::enter) admits a call for a key,
/// [`caches_content`](Self::caches_content) selects which objects to cache with content, and, with [division by
/// label](crate::Sharding::by_label), [`wanted`](Self::wanted) is the selector of what to watch.
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
    /// The label by which objects are divided; `None` if they are divided by owner.
    label: Option<ShardLabel>,
    /// Admits calls.
    gate: Gate,
    /// The shares whose objects are cached.
    content: RwLock<Content>,
    /// The kinds whose keys are handled by members.
    divided: RwLock<BTreeSet<Gvk>>,
    /// Changes when `content` does, except when it shrinks with calls still running.
    content_changes: watch::Sender<u64>,
    /// Changes when the values that may be handled do.
    reports: watch::Sender<u64>,
}

/// The shares whose objects are cached.
struct Content {
    /// The current share, or the one that this process will have once it has joined.
    share: Share,
    /// Earlier shares, while calls for keys that they lost may be running.
    ///
    /// There are several if the members change again before the calls have ended.
    draining: Vec<Share>,
    /// The values of the label whose objects are cached; unused without a label.
    filled: Filled,
}

/// The values of the label whose objects are in the caches.
///
/// Every key here is of a value that [`Content`] holds: a lost value is removed here before its objects may leave the
/// caches.
#[derive(Default)]
struct Filled {
    /// The values in the cache of each kind, as the cache has reported.
    kinds: BTreeMap<Gvk, Arc<BTreeSet<ShardKey>>>,
    /// The values that all kinds had cached at the same time, since they were gained.
    ready: BTreeSet<ShardKey>,
}

impl Content {
    /// Returns whether a key is in one of the shares.
    fn holds(&self, key: ShardKey) -> bool {
        self.share.holds(key) || self.draining.iter().any(|share| share.holds(key))
    }

    /// Removes values that are in none of the shares any more.
    fn forget_lost(&mut self) {
        let mut filled = mem::take(&mut self.filled);
        let holds = |key: &ShardKey| self.holds(*key);
        filled.ready.retain(holds);
        for keys in filled.kinds.values_mut() {
            if !keys.iter().all(holds) {
                Arc::make_mut(keys).retain(holds);
            }
        }
        self.filled = filled;
    }

    /// Adds the values that all kinds have in their caches.
    fn add_ready(&mut self) {
        let mut kinds = self.filled.kinds.values();
        let Some(first) = kinds.next() else {
            return;
        };
        // A handler of one kind reads objects of other kinds, so a value is ready only when every kind has it.
        let by_all = |key: &&ShardKey| self.filled.kinds.values().all(|keys| keys.contains(key));
        let ready: Vec<ShardKey> = first.iter().filter(by_all).copied().collect();
        self.filled.ready.extend(ready);
    }
}

impl Shards {
    /// Creates an empty share.
    pub(super) fn new(leadership: Leadership, label: Option<ShardLabel>) -> Self {
        let content = Content {
            share: Share::none(),
            draining: Vec::new(),
            filled: Filled::default(),
        };
        Self {
            inner: Arc::new(Inner {
                leadership,
                label,
                gate: Gate::new(),
                content: RwLock::new(content),
                divided: RwLock::default(),
                content_changes: watch::Sender::new(0),
                reports: watch::Sender::new(0),
            }),
        }
    }

    /// Returns the share that this process handles.
    #[must_use]
    pub fn share(&self) -> Share {
        self.inner.gate.follow().borrow().clone()
    }

    /// Returns the share of a kind that this process may handle now.
    ///
    /// With [division by label](crate::Sharding::by_label), it is limited to values whose objects are cached: for this
    /// kind the values it last [reported](Self::report_cached), for the other kinds the values they had at some time
    /// since the value was gained.
    #[must_use]
    pub fn share_of(&self, gvk: &Gvk) -> Share {
        let share = self.share();
        if self.inner.label.is_none() {
            return share;
        }
        let filled = &self.inner.content.read().filled;
        let own = filled.kinds.get(gvk).cloned().unwrap_or_default();
        // The usual case, in which the share uses the set without copying it.
        if own.is_subset(&filled.ready) {
            return share.within(own);
        }
        let both = own.intersection(&filled.ready).copied().collect();
        share.within(Arc::new(both))
    }

    /// Returns the key by which an object is assigned to a member.
    ///
    /// `None` if the object lacks the [label](crate::Sharding::by_label), so that no member handles it.
    #[must_use]
    pub fn key_of(&self, gvk: &Gvk, object: &ObjectMetadata) -> Option<ShardKey> {
        match &self.inner.label {
            Some(label) => label.key_of(object),
            None => Some(ShardKey::of_object(gvk, object)),
        }
    }

    /// Returns whether objects are divided by a [label](crate::Sharding::by_label).
    ///
    /// If so, an object that is not cached belongs to another member or does not exist.
    #[must_use]
    pub fn has_label(&self) -> bool {
        self.inner.label.is_some()
    }

    /// Returns the values of the label that this process should cache.
    ///
    /// These are the values it has, will have once it has joined, or is about to hand over. `None` without [division by
    /// label](crate::Sharding::by_label).
    #[must_use]
    pub fn wanted(&self) -> Option<WantedValues> {
        let label = self.inner.label.as_ref()?;
        let content = self.inner.content.read();
        let keys = label.keys(|key| content.holds(key));
        Some(WantedValues {
            selector: label.selector(&keys),
            keys: Arc::new(keys),
        })
    }

    /// Declares that a kind will report what it has cached; nothing is cached yet.
    ///
    /// Values that are gained from now on wait for this kind.
    pub fn register_kind(&self, gvk: &Gvk) {
        let mut content = self.inner.content.write();
        // `ready` keeps its values, so a kind that is added later does not stop the handlers of other kinds.
        content.filled.kinds.insert(gvk.clone(), Arc::default());
    }

    /// Reports that the cache of a kind contains all objects with some values.
    ///
    /// Values that were lost in the meantime are ignored.
    pub fn report_cached(&self, gvk: &Gvk, values: &WantedValues) {
        let mut content = self.inner.content.write();
        let kinds = &mut content.filled.kinds;
        kinds.insert(gvk.clone(), Arc::clone(&values.keys));
        // The report may be older than the share, and contain values that were lost meanwhile.
        content.forget_lost();
        content.add_ready();
        drop(content);
        self.inner.reports.send_modify(|count| *count += 1);
    }

    /// Declares that a kind no longer reports what it has cached.
    pub fn deregister_kind(&self, gvk: &Gvk) {
        let mut content = self.inner.content.write();
        content.filled.kinds.remove(gvk);
        // Values may have waited for this kind alone.
        content.add_ready();
        if content.filled.kinds.is_empty() {
            content.filled.ready.clear();
        }
        drop(content);
        self.inner.reports.send_modify(|count| *count += 1);
    }

    /// Returns a receiver that changes whenever caches report new values.
    ///
    /// [`share_of`](Self::share_of) may have grown then.
    #[must_use]
    pub fn cache_reports(&self) -> watch::Receiver<u64> {
        self.inner.reports.subscribe()
    }

    /// Returns a receiver of the share and its changes.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Share> {
        self.inner.gate.follow()
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
        // An object without the label is handled by no member, so all members keep it.
        let key = self.key_of(gvk, object);
        key.is_none_or(|key| self.inner.content.read().holds(key))
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
        content.forget_lost();
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
        content.forget_lost();
        drop(content);
        self.inner.content_changes.send_modify(|count| *count += 1);
    }

    /// Stops admitting calls.
    pub(super) fn end(&self) {
        self.inner.gate.set(&Share::none());
    }
}

/// The values of a label whose objects a process should cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedValues {
    /// Selects the objects.
    selector: LabelSelector,
    /// The keys of the values.
    keys: Arc<BTreeSet<ShardKey>>,
}

impl WantedValues {
    /// Returns the selector of the objects with these values.
    ///
    /// Without values, it selects no object.
    #[must_use]
    pub fn selector(&self) -> &LabelSelector {
        &self.selector
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

    use super::*;

    const VALUES: u32 = 12;

    fn shards() -> Shards {
        let second = Duration::from_secs(1);
        let leadership = Leadership::new("shops", "shop", "me".into(), second);
        let values = (0..VALUES).map(|value| value.to_string());
        Shards::new(leadership, Some(ShardLabel::new("shard", values)))
    }

    fn keys() -> impl Iterator<Item = ShardKey> {
        (0..VALUES).map(|value| ShardKey::of_label("shard", &value.to_string()))
    }

    /// As a member's task does when the ring changes.
    fn change(shards: &Shards, share: &Share) {
        shards.keep(share);
        shards.gate().set(share);
    }

    fn check(shards: &Shards, gvk: &Gvk, expected: &Share) {
        let own = shards.share_of(gvk);
        let is_own: Vec<bool> = keys().map(|key| own.holds(key)).collect();
        let expected: Vec<bool> = keys().map(|key| expected.holds(key)).collect();
        assert_eq!(is_own, expected, "{gvk}");
    }

    fn fill(shards: &Shards, gvk: &Gvk) {
        let wanted = shards.wanted().expect("there is a label");
        shards.report_cached(gvk, &wanted);
    }

    #[test]
    fn what_is_gained_is_own_when_all_kinds_are_filled() {
        let (shards, pods) = (shards(), Gvk::new("", "v1", "Pod"));
        let jobs = Gvk::new("batch", "v1", "Job");
        let both_kinds = [&pods, &jobs];
        both_kinds.iter().for_each(|gvk| shards.register_kind(gvk));
        let both = Share::of("me", ["other"]);
        change(&shards, &both);
        fill(&shards, &pods);
        check(&shards, &pods, &Share::none());
        fill(&shards, &jobs);
        both_kinds.iter().for_each(|gvk| check(&shards, gvk, &both));

        let alone = Share::of("me", []);
        change(&shards, &alone);
        both_kinds.iter().for_each(|gvk| check(&shards, gvk, &both));
        fill(&shards, &jobs);
        both_kinds.iter().for_each(|gvk| check(&shards, gvk, &both));
        shards.deregister_kind(&pods);
        check(&shards, &jobs, &alone);
        check(&shards, &pods, &Share::none());
    }

    #[test]
    fn what_is_lost_and_gained_again_has_to_be_filled_again() {
        let (shards, pods) = (shards(), Gvk::new("", "v1", "Pod"));
        shards.register_kind(&pods);
        let (alone, both) = (Share::of("me", []), Share::of("me", ["other"]));
        change(&shards, &alone);
        let all = shards.wanted().expect("there is a label");
        shards.report_cached(&pods, &all);
        check(&shards, &pods, &alone);

        shards.keep(&both);
        shards.gate().set(&both);
        check(&shards, &pods, &both);
        assert_eq!(shards.wanted(), Some(all.clone()), "until it is drained");
        shards.drop_lost();
        assert_ne!(shards.wanted(), Some(all.clone()));
        // A report of what was read before says nothing about what was lost.
        shards.report_cached(&pods, &all);
        change(&shards, &alone);
        check(&shards, &pods, &both);
        fill(&shards, &pods);
        check(&shards, &pods, &alone);
    }

    #[test]
    fn objects_of_lost_keys_stay_cached_while_the_members_change_again() {
        let shards = shards();
        let wanted = || shards.wanted().expect("there is a label");
        change(&shards, &Share::of("me", []));
        let all = wanted();
        change(&shards, &Share::of("me", ["b"]));
        assert_eq!(wanted(), all, "calls for keys of b may be running");
        change(&shards, &Share::of("me", ["b", "c"]));
        assert_eq!(wanted(), all, "and for keys of c");
        change(&shards, &Share::of("me", ["c"]));
        assert_eq!(wanted(), all, "and for keys of b still");
        shards.drop_lost();
        let both = wanted();
        assert_ne!(both, all);
        // What was lost and has come back is no longer lost.
        change(&shards, &Share::of("me", ["c", "d"]));
        change(&shards, &Share::of("me", ["c"]));
        assert_eq!(
            (wanted(), shards.inner.content.read().draining.len()),
            (both, 0)
        );
        change(&shards, &Share::of("me-again", ["c", "d"]));
        assert_eq!(
            shards.inner.content.read().draining.len(),
            0,
            "another term"
        );
    }
}
