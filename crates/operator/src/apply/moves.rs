//! Asks and tells the siblings of a set, while it is applied, about objects that move.

use std::sync::Arc;

use super::resolve::Target;
use super::run::Run;
use super::siblings::{CallNumber, Caller, Fate, Identity};

impl Run<'_> {
    /// Records what the set wants, for the other sets of the owner.
    pub(super) fn announce(&self, targets: &[Target]) {
        if self.is_dry {
            return;
        }
        let wanted = targets
            .iter()
            .map(|each| Identity::new(each.gvk(), &each.key));
        let wanted = wanted.collect();
        let set = &self.set.marks.set;
        let by = self.caller();
        let memory = self.set.memory();
        memory.siblings(|siblings| siblings.announce(set, &by, wanted));
    }

    /// Returns whether a sibling set wants an object too.
    pub(super) fn has_wanted(&self, set: &str, target: &Target) -> bool {
        let id = Identity::new(target.gvk(), &target.key);
        let by = self.caller();
        let memory = self.set.memory();
        memory.siblings(|siblings| siblings.has_wanted(set, &id, &by))
    }

    /// Decides about the unwanted objects of the set.
    ///
    /// A plan shows what happens in the end, so it does not wait.
    pub(super) fn fates(&self, ids: &[Identity], may_have_siblings: bool) -> Vec<Fate> {
        let set = &self.set.marks.set;
        // An owner that is being deleted empties all of its sets.
        if self.set.owner.is_deleting() {
            return vec![Fate::Delete; ids.len()];
        }
        let by = self.caller();
        self.set.memory().siblings(|siblings| {
            if !may_have_siblings && siblings.is_alone(set) {
                return vec![Fate::Delete; ids.len()];
            }
            if self.is_dry {
                let fate = |id: &Identity| {
                    let sibling = siblings.wanted_by(set, &by, id, by.number);
                    sibling.map_or(Fate::Delete, Fate::LeaveTo)
                };
                return ids.iter().map(fate).collect();
            }
            siblings.fates(set, &by, ids)
        })
    }

    fn caller(&self) -> Caller {
        Caller {
            number: *self.set.call.feature::<CallNumber>(),
            succeeded: self.set.call.succeeded(),
            ended: self.set.call.ended(),
            reconciler: Arc::clone(&self.set.reconciler),
        }
    }
}
