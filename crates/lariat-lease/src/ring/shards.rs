//! The share of a process in a ring.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use lariat_core::{Gvk, LabelSelector, ObjectMetadata, OwnerRef};
use parking_lot::RwLock;
use tokio::sync::watch;

use super::gate::{Gate, Permit};
use super::label::ShardLabel;
use super::share::{ShardKey, Share};
use crate::leadership::Leadership;

/// The share of this process in a ring; a clone is the same.
///
/// It is empty until the process has joined, and after it has left or lost its lease.
///
/// ```no_run
/// use lariat_core::{Gvk, ObjectKey};
/// use lariat_lease::{ShardKey, Shards};
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
    inner: Arc<Inner>,
}

struct Inner {
    leadership: Leadership,
    /// The label by whose values objects are divided; none if they are divided by owner.
    label: Option<ShardLabel>,
    gate: Gate,
    content: RwLock<Content>,
    /// The kinds whose keys are handled by members.
    divided: RwLock<BTreeSet<Gvk>>,
    content_changes: watch::Sender<u64>,
    /// Changes whenever the values that may be handled do.
    fills: watch::Sender<u64>,
}

/// The shares whose content is cached.
struct Content {
    share: Share,
    /// The previous share, while calls for the keys it lost are running.
    before: Share,
    /// The values of the label whose objects are cached; unused without a label.
    filled: Filled,
}

/// Which values of the label are cached.
///
/// Every key here is of a value that [`Content`] holds: it is removed before the objects may leave the caches.
#[derive(Default)]
struct Filled {
    /// By kind, as its cache has reported.
    kinds: BTreeMap<Gvk, Arc<BTreeSet<ShardKey>>>,
    /// Those that all kinds had cached at some time since they were gained.
    ready: BTreeSet<ShardKey>,
}

impl Content {
    fn holds(&self, key: ShardKey) -> bool {
        self.share.holds(key) || self.before.holds(key)
    }

    /// Forgets values that are not held any more.
    fn forget_lost(&mut self) {
        let (share, before) = (self.share.clone(), self.before.clone());
        let holds = |key: &ShardKey| share.holds(*key) || before.holds(*key);
        self.filled.ready.retain(holds);
        for keys in self.filled.kinds.values_mut() {
            if !keys.iter().all(holds) {
                Arc::make_mut(keys).retain(holds);
            }
        }
    }

    /// Adds the values that all kinds have cached.
    fn add_ready(&mut self) {
        let mut kinds = self.filled.kinds.values();
        let Some(first) = kinds.next() else {
            return;
        };
        let by_all = |key: &&ShardKey| self.filled.kinds.values().all(|keys| keys.contains(key));
        let ready: Vec<ShardKey> = first.iter().filter(by_all).copied().collect();
        self.filled.ready.extend(ready);
    }
}

impl Shards {
    pub(super) fn new(leadership: Leadership, label: Option<ShardLabel>) -> Self {
        let content = Content {
            share: Share::none(),
            before: Share::none(),
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
                fills: watch::Sender::new(0),
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
    /// With [`by_label`](crate::Sharding::by_label) it is limited to the values whose objects are cached: those of this
    /// kind by what it has [reported](Self::note_filled), and those of the others at some time since the value was gained.
    #[must_use]
    pub fn share_of(&self, gvk: &Gvk) -> Share {
        let share = self.share();
        if self.inner.label.is_none() {
            return share;
        }
        let filled = &self.inner.content.read().filled;
        let own = filled.kinds.get(gvk).cloned().unwrap_or_default();
        if own.is_subset(&filled.ready) {
            return share.within(own);
        }
        let both = own.intersection(&filled.ready).copied().collect();
        share.within(Arc::new(both))
    }

    /// Returns the key by which an object is assigned to a member.
    ///
    /// `None` if no member handles it, because it does not have the [label](crate::Sharding::by_label).
    #[must_use]
    pub fn key_of(&self, gvk: &Gvk, object: &ObjectMetadata) -> Option<ShardKey> {
        match &self.inner.label {
            Some(label) => label.key_of(object),
            None => Some(ShardKey::of_object(gvk, object)),
        }
    }

    /// Returns whether objects are divided by a [label](crate::Sharding::by_label).
    ///
    /// If so, an object that is not cached is of another member, or does not exist.
    #[must_use]
    pub fn has_label(&self) -> bool {
        self.inner.label.is_some()
    }

    /// Returns the values of the label that this process should cache.
    ///
    /// Those are the values that it has, will have once it has joined, or is about to hand over.
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

    /// Declares that a kind begins to report what it has cached, which is nothing yet.
    ///
    /// Values that are gained from now on wait for it.
    pub fn begin_filling(&self, gvk: &Gvk) {
        let mut content = self.inner.content.write();
        content.filled.kinds.insert(gvk.clone(), Arc::default());
    }

    /// Reports that the cache of a kind has all objects with some values.
    ///
    /// Values that were lost in the meantime do not count.
    pub fn note_filled(&self, gvk: &Gvk, values: &WantedValues) {
        let mut content = self.inner.content.write();
        let kinds = &mut content.filled.kinds;
        kinds.insert(gvk.clone(), Arc::clone(&values.keys));
        content.forget_lost();
        content.add_ready();
        drop(content);
        self.inner.fills.send_modify(|count| *count += 1);
    }

    /// Declares that a kind does not report any more.
    pub fn end_filling(&self, gvk: &Gvk) {
        let mut content = self.inner.content.write();
        content.filled.kinds.remove(gvk);
        content.add_ready();
        if content.filled.kinds.is_empty() {
            content.filled.ready.clear();
        }
        drop(content);
        self.inner.fills.send_modify(|count| *count += 1);
    }

    /// Returns a receiver that changes whenever [`share_of`](Self::share_of) grows because something was cached.
    #[must_use]
    pub fn fills(&self) -> watch::Receiver<u64> {
        self.inner.fills.subscribe()
    }

    /// Returns a receiver of the share and its changes.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Share> {
        self.inner.gate.follow()
    }

    /// Returns the permission to handle a key; `None` if it belongs to another process.
    ///
    /// While the permit exists, no other process gets the key. Drop it when the work has ended, and soon after
    /// [`Permit::revoked`] resolves.
    #[must_use]
    pub fn enter(&self, key: ShardKey) -> Option<Permit> {
        // A process that was suspended may not be a member any more before its task has noticed.
        let is_member = self.inner.leadership.leads();
        is_member.then(|| self.inner.gate.enter(key)).flatten()
    }

    /// Declares that members handle the keys of a kind.
    pub fn divide(&self, gvk: &Gvk) {
        self.inner.divided.write().insert(gvk.clone());
    }

    /// Returns whether this process should cache the content of an object.
    ///
    /// That is so for the share that it has, will have once it has joined, or is about to hand over. Objects that no
    /// member handles belong to all: those of kinds that are not [divided](Self::divide), if they have no controlling
    /// owner.
    #[must_use]
    pub fn keeps(&self, gvk: &Gvk, object: &ObjectMetadata) -> bool {
        let is_controlled = || object.owners().iter().any(OwnerRef::is_controller);
        if !self.inner.divided.read().contains(gvk) && !is_controlled() {
            return true;
        }
        // What has no label is handled by no member.
        let key = self.key_of(gvk, object);
        key.is_none_or(|key| self.inner.content.read().holds(key))
    }

    /// Returns a receiver that changes whenever [`keeps`](Self::keeps) may change.
    #[must_use]
    pub fn content_changes(&self) -> watch::Receiver<u64> {
        self.inner.content_changes.subscribe()
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.inner.gate
    }

    /// Keeps the content of a new share.
    ///
    /// That of lost keys is kept until [`let_go`](Self::let_go).
    pub(super) fn keep(&self, share: &Share, grows: bool, shrinks: bool) {
        let mut content = self.inner.content.write();
        let before = std::mem::replace(&mut content.share, share.clone());
        content.before = if shrinks { before } else { Share::none() };
        content.forget_lost();
        drop(content);
        if grows {
            self.inner.content_changes.send_modify(|count| *count += 1);
        }
    }

    /// Keeps only the content of the present share.
    pub(super) fn let_go(&self) {
        let mut content = self.inner.content.write();
        if content.before == Share::none() {
            return;
        }
        content.before = Share::none();
        content.forget_lost();
        drop(content);
        self.inner.content_changes.send_modify(|count| *count += 1);
    }

    /// Admits no key any more.
    pub(super) fn end(&self) {
        self.inner.gate.set(&Share::none());
    }
}

/// The values of a label that a process should cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedValues {
    selector: LabelSelector,
    keys: Arc<BTreeSet<ShardKey>>,
}

impl WantedValues {
    /// Returns the selector of the objects with these values; it selects none if there are no values.
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
        shards.keep(share, true, false);
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
        shards.note_filled(gvk, &wanted);
    }

    #[test]
    fn what_is_gained_is_own_when_all_kinds_are_filled() {
        let (shards, pods) = (shards(), Gvk::new("", "v1", "Pod"));
        let jobs = Gvk::new("batch", "v1", "Job");
        let both_kinds = [&pods, &jobs];
        both_kinds.iter().for_each(|gvk| shards.begin_filling(gvk));
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
        shards.end_filling(&pods);
        check(&shards, &jobs, &alone);
        check(&shards, &pods, &Share::none());
    }

    #[test]
    fn what_is_lost_and_gained_again_has_to_be_filled_again() {
        let (shards, pods) = (shards(), Gvk::new("", "v1", "Pod"));
        shards.begin_filling(&pods);
        let (alone, both) = (Share::of("me", []), Share::of("me", ["other"]));
        change(&shards, &alone);
        let all = shards.wanted().expect("there is a label");
        shards.note_filled(&pods, &all);
        check(&shards, &pods, &alone);

        shards.keep(&both, false, true);
        shards.gate().set(&both);
        check(&shards, &pods, &both);
        assert_eq!(shards.wanted(), Some(all.clone()), "until it is drained");
        shards.let_go();
        assert_ne!(shards.wanted(), Some(all.clone()));
        // A report of what was read before says nothing about what was lost.
        shards.note_filled(&pods, &all);
        change(&shards, &alone);
        check(&shards, &pods, &both);
        fill(&shards, &pods);
        check(&shards, &pods, &alone);
    }
}
