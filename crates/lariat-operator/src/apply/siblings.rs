//! Objects that move between the sets of one owner.
//!
//! The sets of an owner are applied one after the other, and the objects of one may become those of another. Whichever
//! set is applied first, such an object is relabelled and never deleted:
//!
//! - If the set that wants it comes first, it takes the object over. It does not if the other set wants the object too:
//!   in the same call, or as another reconciler last applied it.
//! - If the set that no longer wants it comes first, it leaves the object for one call, and deletes it in the next if
//!   it is still its own and no other set wants it. A set without siblings has nothing to wait for, and neither has one
//!   whose owner is being deleted.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// The call in which each object of a set was first found unwanted.
    unwanted: HashMap<String, HashMap<Identity, CallNumber>>,
}

/// The last apply of a set.
struct LastApply {
    first: CallNumber,
    last: CallNumber,
    reconciler: Arc<str>,
    wanted: BTreeSet<Identity>,
}

/// One call of a reconciler.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) number: CallNumber,
    pub(super) reconciler: Arc<str>,
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
        let known = self.sets.get(set);
        let apply = LastApply {
            first: known.map_or(by.number, |known| known.first),
            last: by.number,
            reconciler: Arc::clone(&by.reconciler),
            wanted,
        };
        // Names of sets may be made up. The bound costs a wait, not correctness.
        if self.sets.len() >= MOST_SETS {
            self.sets.clear();
        }
        self.sets.insert(set.to_owned(), apply);
    }

    /// Returns whether a sibling set wants an object at the same time as the caller.
    ///
    /// An earlier call of the same reconciler says nothing: the set may be applied later in this one.
    pub(super) fn has_wanted(&self, set: &str, id: &Identity, by: &Caller) -> bool {
        self.sets.get(set).is_some_and(|known| {
            let is_current = known.last == by.number || known.reconciler != by.reconciler;
            is_current && known.wanted.contains(id)
        })
    }

    /// Returns whether earlier calls have applied this set and no other.
    pub(super) fn is_alone(&self, set: &str, by: &Caller) -> bool {
        let known = self.sets.get(set);
        self.sets.len() == 1 && known.is_some_and(|known| known.first < by.number)
    }

    /// Decides about the unwanted objects of a set.
    pub(super) fn fates(&mut self, set: &str, by: &Caller, unwanted: &[Identity]) -> Vec<Fate> {
        let before = self.unwanted.remove(set).unwrap_or_default();
        let since = |id: &Identity| before.get(id).copied().unwrap_or(by.number);
        let of = |id: &Identity| self.fate(set, by, id, since(id));
        let fates = unwanted.iter().map(of).collect();
        let found = unwanted.iter().map(|id| (id.clone(), since(id)));
        let found: HashMap<_, _> = found.collect();
        if !found.is_empty() {
            self.unwanted.insert(set.to_owned(), found);
        }
        fates
    }

    pub(super) fn fate(&self, set: &str, by: &Caller, id: &Identity, since: CallNumber) -> Fate {
        let wants = |(name, known): &(&String, &LastApply)| {
            // A set that its reconciler has not applied since the object was found is perhaps not applied any more.
            let is_current = known.last >= since || known.reconciler != by.reconciler;
            **name != *set && is_current && known.wanted.contains(id)
        };
        match self.sets.iter().find(wants) {
            Some((sibling, _)) => Fate::LeaveTo(sibling.clone()),
            None if since < by.number => Fate::Delete,
            None => Fate::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(number: u64, reconciler: &str) -> Caller {
        Caller {
            number: CallNumber(number),
            reconciler: reconciler.into(),
        }
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
        siblings.announce("a", &by(1, "r"), ids(&[]));
        assert!(!siblings.is_alone("a", &by(1, "r")));
        assert_eq!(siblings.fates("a", &by(1, "r"), &[id("x")]), [Fate::Wait]);
        siblings.announce("a", &by(2, "r"), ids(&[]));
        assert!(siblings.is_alone("a", &by(2, "r")));
        let both = [id("x"), id("y")];
        let fates = siblings.fates("a", &by(2, "r"), &both);
        assert_eq!(fates, [Fate::Delete, Fate::Wait]);
        siblings.announce("b", &by(2, "r"), ids(&["y"]));
        assert!(!siblings.is_alone("a", &by(3, "r")));
        let left = Fate::LeaveTo("b".to_owned());
        assert_eq!(siblings.fates("a", &by(3, "r"), &both[1..])[0], left);
        // An object that was wanted again meanwhile begins from the start.
        assert_eq!(siblings.fates("a", &by(4, "r"), &[]), []);
        assert_eq!(siblings.fates("a", &by(5, "r"), &[id("x")]), [Fate::Wait]);
        // The reconciler has stopped to apply the other set.
        assert_eq!(siblings.fates("a", &by(6, "r"), &both[1..]), [Fate::Wait]);
        assert_eq!(siblings.fates("a", &by(7, "r"), &both[1..]), [Fate::Delete]);
        // Another reconciler's calls are not ordered with those of this one.
        siblings.announce("b", &by(3, "s"), ids(&["y"]));
        assert_eq!(siblings.fates("a", &by(8, "r"), &both[1..]), [left]);
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
