//! Objects that move between the sets of one owner.
//!
//! The sets of an owner are applied one after the other, and the objects of one may become those of another. Whichever
//! set is applied first, such an object is relabelled and never deleted:
//!
//! - If the set that wants it comes first, it takes the object over. It does not if the other set wants the object too:
//!   in the same call, or as another reconciler last applied it.
//! - If the set that no longer wants it comes first, it leaves the object for one call, and deletes it in the next if
//!   it is still its own and no other set wants it. A call that fails does not count, because it may have failed before
//!   it applied the other set. A set without siblings has nothing to wait for, and neither has one whose owner is being
//!   deleted.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lariat_core::{Gvk, ObjectKey};

/// The bound of the sets that are remembered of one owner.
const MOST_SETS: usize = 1024;

/// The number of a reconcile call in this process; a later call has a greater one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallNumber(u64);

impl Default for CallNumber {
    fn default() -> Self {
        static CALLS: AtomicU64 = AtomicU64::new(1);
        Self(CALLS.fetch_add(1, Ordering::Relaxed))
    }
}

/// An object in all versions of its kind: group, kind and key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Identity(String, String, ObjectKey);

impl Identity {
    pub(super) fn new(gvk: &Gvk, key: &ObjectKey) -> Self {
        Self(gvk.group().to_owned(), gvk.kind().to_owned(), key.clone())
    }
}

/// The sets of one owner that this process has applied.
#[derive(Default)]
pub(super) struct Siblings {
    sets: HashMap<String, LastApply>,
    /// The call in which each object of a set was found unwanted, the last one of those that failed.
    unwanted: HashMap<String, HashMap<Identity, Caller>>,
}

/// The last apply of a set.
struct LastApply {
    by: Caller,
    /// Whether a call that applied it has succeeded, and with it applied all sets.
    is_complete: bool,
    wanted: BTreeSet<Identity>,
}

/// One call of a reconciler.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) number: CallNumber,
    /// Set once the call has succeeded.
    pub(super) succeeded: Arc<AtomicBool>,
    pub(super) reconciler: Arc<str>,
    /// Set once the reconciler has ended. Its calls may go on.
    pub(super) ended: Arc<AtomicBool>,
}

impl Caller {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn has_succeeded(&self) -> bool {
        self.succeeded.load(Ordering::Relaxed)
    }
}

/// What is done with an unwanted object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Delete,
    /// It is deleted in the next call, unless another set wants it by then.
    Wait,
    /// It is left to a sibling set that wants it.
    LeaveTo(String),
}

impl Siblings {
    /// Records what a set wants, before it is applied.
    pub(super) fn announce(&mut self, set: &str, by: &Caller, wanted: BTreeSet<Identity>) {
        // A call may outlive its reconciler, and what it applies is free for others.
        if by.has_ended() {
            return;
        }
        let known = self.sets.get(set);
        let apply = LastApply {
            by: by.clone(),
            is_complete: known.is_some_and(|known| known.is_complete || known.by.has_succeeded()),
            wanted,
        };
        // Names of sets may be made up. The bound costs a wait, not correctness.
        if known.is_none() && self.sets.len() >= MOST_SETS {
            self.sets.clear();
            self.unwanted.clear();
        }
        self.sets.insert(set.to_owned(), apply);
    }

    /// Forgets the sets of reconcilers that have ended.
    pub(super) fn forget_ended(&mut self) {
        self.sets.retain(|_, known| !known.by.has_ended());
    }

    /// Returns whether a sibling set wants an object at the same time as the caller.
    ///
    /// An earlier call of the same reconciler says nothing: the set may be applied later in this one.
    pub(super) fn has_wanted(&self, set: &str, id: &Identity, by: &Caller) -> bool {
        self.sets.get(set).is_some_and(|known| {
            let is_current = known.by.number == by.number || known.by.reconciler != by.reconciler;
            is_current && !known.by.has_ended() && known.wanted.contains(id)
        })
    }

    /// Returns whether earlier calls have applied this set and no other.
    pub(super) fn is_alone(&self, set: &str) -> bool {
        let known = self.sets.get(set);
        self.sets.len() == 1 && known.is_some_and(|known| known.is_complete)
    }

    /// Decides about the unwanted objects of a set.
    pub(super) fn fates(&mut self, set: &str, by: &Caller, unwanted: &[Identity]) -> Vec<Fate> {
        let before = self.unwanted.remove(set).unwrap_or_default();
        let found = unwanted.iter().map(|id| {
            let earlier = before.get(id).filter(|found| found.has_succeeded());
            (id.clone(), earlier.unwrap_or(by).clone())
        });
        let found: Vec<(Identity, Caller)> = found.collect();
        let fate =
            |(id, found): &(Identity, Caller)| match self.wanted_by(set, by, id, found.number) {
                Some(sibling) => Fate::LeaveTo(sibling),
                None if found.has_succeeded() => Fate::Delete,
                None => Fate::Wait,
            };
        let fates = found.iter().map(fate).collect();
        if !found.is_empty() {
            self.unwanted
                .insert(set.to_owned(), found.into_iter().collect());
        }
        fates
    }

    /// Returns the sibling set that wants an object which is unwanted since a call.
    pub(super) fn wanted_by(
        &self,
        set: &str,
        by: &Caller,
        id: &Identity,
        since: CallNumber,
    ) -> Option<String> {
        let wants = |(name, known): &(&String, &LastApply)| {
            // A set that its reconciler has not applied since the object was found is perhaps not applied any more.
            let is_current = known.by.number >= since || known.by.reconciler != by.reconciler;
            let wants = !known.by.has_ended() && known.wanted.contains(id);
            **name != *set && is_current && wants
        };
        let sibling = self.sets.iter().find(wants);
        sibling.map(|(name, _)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(number: u64, reconciler: &str) -> Caller {
        Caller {
            number: CallNumber(number),
            succeeded: Arc::default(),
            ended: Arc::default(),
            reconciler: reconciler.into(),
        }
    }

    /// Applies the set `a`, which wants nothing, in a call that succeeds or fails afterwards.
    fn call(
        siblings: &mut Siblings,
        number: u64,
        unwanted: &[Identity],
        succeeds: bool,
    ) -> Vec<Fate> {
        let by = by(number, "r");
        siblings.announce("a", &by, ids(&[]));
        let fates = siblings.fates("a", &by, unwanted);
        by.succeeded.store(succeeds, Ordering::Relaxed);
        fates
    }

    fn id(name: &str) -> Identity {
        Identity::new(&Gvk::new("", "v1", "ConfigMap"), &ObjectKey::cluster(name))
    }

    fn ids(names: &[&str]) -> BTreeSet<Identity> {
        names.iter().map(|name| id(name)).collect()
    }

    #[test]
    fn unwanted_object_waits_for_one_call_if_siblings_may_want_it() {
        let mut siblings = Siblings::default();
        let call =
            |siblings: &mut Siblings, number, ids: &[Identity]| call(siblings, number, ids, true);
        assert_eq!(call(&mut siblings, 1, &[id("x")]), [Fate::Wait]);
        assert!(!siblings.is_alone("a"));
        let both = [id("x"), id("y")];
        assert_eq!(call(&mut siblings, 2, &both), [Fate::Delete, Fate::Wait]);
        assert!(siblings.is_alone("a"));
        siblings.announce("b", &by(2, "r"), ids(&["y"]));
        assert!(!siblings.is_alone("a"));
        let left = Fate::LeaveTo("b".to_owned());
        assert_eq!(call(&mut siblings, 3, &both[1..])[0], left);
        // An object that was wanted again meanwhile begins from the start.
        assert_eq!(call(&mut siblings, 4, &[]), []);
        assert_eq!(call(&mut siblings, 5, &[id("x")]), [Fate::Wait]);
        // The reconciler has stopped to apply the other set.
        assert_eq!(call(&mut siblings, 6, &both[1..]), [Fate::Wait]);
        assert_eq!(call(&mut siblings, 7, &both[1..]), [Fate::Delete]);
        // Another reconciler's calls are not ordered with those of this one.
        siblings.announce("b", &by(3, "s"), ids(&["y"]));
        assert_eq!(call(&mut siblings, 8, &both[1..]), [left]);
    }

    #[test]
    fn unwanted_object_waits_until_a_call_has_succeeded() {
        let mut siblings = Siblings::default();
        for (number, succeeds, expected) in [
            (1, false, Fate::Wait),
            (2, false, Fate::Wait),
            (3, true, Fate::Wait),
            (4, false, Fate::Delete),
            // The deletion has failed.
            (5, false, Fate::Delete),
        ] {
            let fates = call(&mut siblings, number, &[id("x")], succeeds);
            assert_eq!(fates, [expected], "{number}");
            assert_eq!(siblings.is_alone("a"), number > 3, "{number}");
        }
    }

    #[test]
    fn sibling_wants_object_in_same_call_or_by_other_reconciler() {
        let mut siblings = Siblings::default();
        siblings.announce("b", &by(1, "r"), ids(&["x"]));
        assert!(siblings.has_wanted("b", &id("x"), &by(1, "r")));
        assert!(!siblings.has_wanted("b", &id("y"), &by(1, "r")));
        assert!(!siblings.has_wanted("b", &id("x"), &by(2, "r")));
        assert!(siblings.has_wanted("b", &id("x"), &by(2, "s")));
    }
}
