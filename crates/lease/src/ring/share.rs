//! Assigns keys to members by rendezvous hashing.

use std::collections::BTreeSet;
use std::sync::Arc;

use lariat_core::{FNV_OFFSET, Gvk, ObjectKey, ObjectMetadata, fnv1a};

/// The hash by which an object is assigned to a member of a ring.
///
/// It is computed from group, kind, namespace and name of the object's controlling owner, or of the object itself if it
/// has none. So an object and the objects that it controls belong to the same member. The API version is left out: an
/// object has the same hash in every version. The hash is the same in all processes and builds.
///
/// ```
/// use lariat::lease::ShardKey;
/// use lariat::{Gvk, ObjectKey};
///
/// let key = ObjectKey::namespaced("shop", "web");
/// let [old, new] = ["v1beta1", "v1"].map(|version| ShardKey::of_key(&Gvk::new("apps", version, "Deployment"), &key));
/// assert_eq!(old, new);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardKey(u64);

impl ShardKey {
    /// Returns the hash of an object's own identity.
    #[must_use]
    pub fn of_key(gvk: &Gvk, key: &ObjectKey) -> Self {
        Self::of(
            gvk.group(),
            gvk.kind(),
            key.namespace().unwrap_or_default(),
            key.name(),
        )
    }

    /// Returns the hash of an object's controlling owner, or of the object itself.
    ///
    /// The owner is assumed to be in the object's namespace, because an owner reference does not tell whether its kind
    /// is namespaced. So the objects that a cluster-scoped owner controls belong to one member per namespace, which
    /// need not be the owner's member.
    #[must_use]
    pub fn of_object(gvk: &Gvk, object: &ObjectMetadata) -> Self {
        let owner = object.owners().iter().find(|owner| owner.is_controller());
        let Some(owner) = owner else {
            return Self::of_key(gvk, object.key());
        };
        let api_version = owner.api_version();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let namespace = object.key().namespace().unwrap_or_default();
        Self::of(group, owner.kind(), namespace, owner.name())
    }

    /// Returns the hash of four parts.
    fn of(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let parts = [group, kind, namespace, name];
        Self(mixed(parts.iter().fold(FNV_OFFSET, |hash, part| {
            // No name contains the separator, so different parts cannot give the same text.
            fnv1a(fnv1a(hash, part.as_bytes()), b"/")
        })))
    }
}

/// The keys of one member of a ring, by rendezvous hashing.
///
/// Each key has a score with each member and belongs to the member with the highest. When a member joins, it gets a
/// fair part of all others' keys, and no other keys move. When a member leaves, its keys are spread over all others.
///
/// ```
/// use lariat::lease::{ShardKey, Share};
/// use lariat::{Gvk, ObjectKey};
///
/// let (a, b) = (Share::of("a", ["b"]), Share::of("b", ["a"]));
/// let key = ShardKey::of_key(&Gvk::new("", "v1", "Pod"), &ObjectKey::namespaced("shop", "web-0"));
/// assert_ne!(a.holds(key), b.holds(key), "exactly one member has the key");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The hash of the member's name; `None` for the empty share.
    me: Option<u64>,
    /// The hashes of the other members' names.
    others: Arc<[u64]>,
}

impl Share {
    /// Returns the empty share.
    #[must_use]
    pub fn none() -> Self {
        Self {
            me: None,
            others: Arc::default(),
        }
    }

    /// Returns the share of a member, from its name and the names of the others.
    #[must_use]
    pub fn of<'a>(me: &str, others: impl IntoIterator<Item = &'a str>) -> Self {
        let me = Some(hash_of(me));
        Self::new(me, others.into_iter().map(hash_of))
    }

    /// Returns the share of a member, from its hash and the hashes of the others.
    fn new(me: Option<u64>, others: impl Iterator<Item = u64>) -> Self {
        // In order and without repetition, so that equal shares are equal values.
        let others: BTreeSet<u64> = others.collect();
        let others = others.into_iter().collect();
        Self { me, others }
    }

    /// Returns whether a key belongs to the share.
    #[must_use]
    pub fn holds(&self, key: ShardKey) -> bool {
        let Some(me) = self.me else {
            return false;
        };
        // On a tie, which has a probability of one in 2^64, neither member holds the key: two holders would be worse.
        let mine = mixed(me ^ key.0);
        self.others.iter().all(|other| mixed(other ^ key.0) < mine)
    }

    /// Returns whether another share of the same member holds every key of this one.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        // A member loses keys to members that join, and only to those.
        let others = || other.others.iter().all(|each| self.others.contains(each));
        self.me.is_none() || self.me == other.me && others()
    }

    /// Returns the share of the keys that both shares hold.
    ///
    /// It is empty if the shares belong to different members.
    pub(super) fn and(&self, other: &Self) -> Self {
        if !self.is_of_member_of(other) {
            return Self::none();
        }
        // A member holds a key that is its own beside each other member.
        let others = self.others.iter().chain(&*other.others);
        Self::new(self.me, others.copied())
    }

    /// Returns whether two shares belong to the same member.
    pub(super) fn is_of_member_of(&self, other: &Self) -> bool {
        self.me == other.me
    }

    /// Returns the number of members including this one; zero for the empty share.
    #[must_use]
    pub fn members(&self) -> usize {
        self.me.map_or(0, |_| self.others.len() + 1)
    }
}

/// The finalizer of splitmix64: every bit of the input changes half of the output's.
fn mixed(mut hash: u64) -> u64 {
    // FNV alone maps similar names to similar hashes, which would divide the keys unevenly.
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Returns the hash of a member's name.
fn hash_of(name: &str) -> u64 {
    mixed(fnv1a(FNV_OFFSET, name.as_bytes()))
}

/// Keys that a share has gained. Returned by [`Gains::next`](crate::Gains::next).
#[derive(Debug, Clone)]
pub struct Gained {
    /// Holds the keys that this process has held without a break.
    pub(super) kept: Share,
    /// The present share.
    pub(super) now: Share,
}

impl Gained {
    /// Returns whether a key was gained.
    #[must_use]
    pub fn holds(&self, key: ShardKey) -> bool {
        self.now.holds(key) && !self.kept.holds(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: u32 = 30_000;

    fn key(number: u32) -> ShardKey {
        let key = ObjectKey::namespaced("shop", &format!("order-{number}"));
        ShardKey::of_key(&Gvk::new("", "v1", "ConfigMap"), &key)
    }

    fn shares(names: &[&str]) -> Vec<Share> {
        let others = |me| names.iter().copied().filter(move |it| *it != me);
        let shares = names.iter().map(|me| Share::of(me, others(*me)));
        shares.collect()
    }

    /// Returns the index of the one member that has a key.
    fn holder(shares: &[Share], key: ShardKey) -> usize {
        let holders: Vec<usize> = (0..shares.len())
            .filter(|member| shares[*member].holds(key))
            .collect();
        assert_eq!(holders.len(), 1, "{key:?} has holders {holders:?}");
        holders[0]
    }

    #[test]
    fn every_key_has_one_holder_and_shares_are_balanced() {
        for round in 0..20 {
            let names = ["a", "b", "c"].map(|name| format!("shop-{name}{round:x}"));
            let shares = shares(&names.each_ref().map(String::as_str));
            let mut counts = [0_u32; 3];
            (0..KEYS).for_each(|number| counts[holder(&shares, key(number))] += 1);
            for count in counts {
                assert!(
                    count.abs_diff(KEYS / 3) < KEYS / 30,
                    "{names:?}: {counts:?}"
                );
            }
        }
    }

    #[test]
    fn a_member_that_joins_gets_its_part_and_nothing_else_moves() {
        let (before, after) = (shares(&["a", "b", "c"]), shares(&["a", "b", "c", "d"]));
        let mut moved = 0;
        for key in (0..KEYS).map(key) {
            let (was, is) = (holder(&before, key), holder(&after, key));
            assert!(is == was || is == 3, "a key moved from {was} to {is}");
            moved += u32::from(is != was);
        }
        assert!(moved.abs_diff(KEYS / 4) < KEYS / 40, "{moved} keys moved");
    }

    #[test]
    fn keys_of_two_shares_are_those_that_both_hold() {
        let (ab, ac) = (Share::of("a", ["b"]), Share::of("a", ["c"]));
        let both = ab.and(&ac);
        let is_both = |key| ab.holds(key) && ac.holds(key);
        assert!((0..100).map(key).all(|key| both.holds(key) == is_both(key)));
        assert_eq!(both, Share::of("a", ["c", "b"]));
        assert_eq!(both.and(&ab), both);
        assert_eq!(ab.and(&Share::of("b", ["a"])), Share::none());
        assert_eq!(ab.and(&Share::none()), Share::none());
    }

    #[test]
    fn a_share_is_within_another_of_its_member_with_fewer_others() {
        let (few, many) = (Share::of("a", ["b"]), Share::of("a", ["b", "c"]));
        assert!(many.is_within(&few) && few.is_within(&few));
        assert!(!few.is_within(&many));
        assert!(!many.is_within(&Share::of("d", ["b"])));
        assert!(Share::none().is_within(&many));
    }

    #[test]
    fn the_hash_is_the_same_in_all_builds() {
        let pods = Gvk::new("", "v1", "Pod");
        let key = ShardKey::of_key(&pods, &ObjectKey::namespaced("default", "web"));
        assert_eq!(key, ShardKey(3_768_602_605_691_601_493));
        let other_version = Gvk::new("", "v2", "Pod");
        assert_eq!(
            key,
            ShardKey::of_key(&other_version, &ObjectKey::namespaced("default", "web"))
        );
    }

    #[test]
    fn key_has_no_holder_if_two_members_have_one_hash() {
        let share = Share::of("a", ["a"]);
        assert!((0..100).all(|number| !share.holds(key(number))));
    }

    #[test]
    fn a_share_of_nothing_holds_nothing_and_the_only_member_holds_all() {
        let alone = Share::of("a", []);
        assert!((0..100).all(|number| !Share::none().holds(key(number))));
        assert!((0..100).all(|number| alone.holds(key(number))));
        assert_eq!((Share::none().members(), alone.members()), (0, 1));
    }
}
