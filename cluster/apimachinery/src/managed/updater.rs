//! Ownership of fields after a write.
//!
//! Source: `sigs.k8s.io/structured-merge-diff/v6/merge.Updater`.

use serde_json::Value;

use super::entries::{Managed, Manager, Owned};
use super::error::Conflict;
use super::set::Set;
use super::typed::{self, Difference};
use super::write::STRIPPED;
use crate::schema::TypeRef;

/// A write by one manager.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) typed: TypeRef<'a>,
    pub(super) manager: &'a Manager,
    pub(super) api_version: &'a str,
    /// Fields this write cannot change, which it therefore does not come to own.
    pub(super) ignored: &'a Set,
}

impl Writer<'_> {
    /// Records an update: its manager becomes the only owner of the changed fields.
    ///
    /// Returns whether the manager now owns a field that the write changed.
    pub(super) fn update(&self, managed: &mut Managed, live: &Value, new: &Value) -> bool {
        let difference = typed::compare(self.typed, live, new).without(self.ignored);
        // Everyone loses what the write changed, the writer included: a field that the update removed has no owner
        // then, and the others are given to the writer below.
        for owned in managed.owners.values_mut() {
            remove_changes(&mut owned.set, &difference);
        }
        let mut changed = difference.modified;
        changed.merge(difference.added);
        let changed = changed.difference(&STRIPPED);
        let takes = !changed.is_empty();
        if takes {
            let owned = managed
                .owners
                .entry(self.manager.clone())
                .or_insert_with(|| self.nothing());
            owned.set.merge(changed);
            owned.api_version = self.api_version.to_owned();
        }
        managed.retain();
        takes
    }

    /// Removes the fields that differ in this version from their owners in it.
    pub(super) fn disown(&self, managed: &mut Managed, live: &Value, new: &Value) {
        let difference = typed::compare(self.typed, live, new).without(self.ignored);
        let owners = managed.owners.values_mut();
        for owned in owners.filter(|owned| owned.api_version == self.api_version) {
            remove_changes(&mut owned.set, &difference);
        }
        managed.retain();
    }

    /// Applies an object: returns the merged one, or the conflicts.
    pub(super) fn apply(
        &self,
        managed: &mut Managed,
        live: &Value,
        applied: &Value,
        force: bool,
    ) -> Result<Value, Vec<Conflict>> {
        let merged = typed::merge(self.typed, live, applied);
        // What is applied is owned even if it changes nothing: that is how several appliers share a field.
        let fields = typed::fields(self.typed, applied).recursive_difference(self.ignored);
        let mut owned = self.nothing();
        owned.set = fields;
        // The new set is in place before pruning, so that pruning keeps what this manager still applies.
        let last = managed.owners.insert(self.manager.clone(), owned);
        // What the manager applied last and does not apply now is removed. A first apply has nothing to remove.
        let new = match last {
            Some(last) if !last.set.is_empty() => self.prune(&merged, managed, &last.set),
            _ => merged,
        };
        // Conflicts are looked for after pruning, in what the apply as a whole changes: removing a field of one's own
        // that others own too changes nothing.
        let difference = typed::compare(self.typed, live, &new).without(self.ignored);
        let conflicts = self.conflicts(managed, &difference);
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        for (manager, owned) in &mut managed.owners {
            // With force, the others lose what was changed, and no more: equal values stay shared.
            if manager != self.manager {
                remove_changes(&mut owned.set, &difference);
            }
        }
        managed.retain();
        Ok(new)
    }

    fn nothing(&self) -> Owned {
        Owned {
            set: Set::default(),
            api_version: self.api_version.to_owned(),
            time: None,
        }
    }

    // Go converts both objects into the version of each owner and compares them there. Here one comparison serves all
    // owners, whatever the version their fields were set in. Removed fields are no conflict: pruning only removes what
    // no one else owns.
    fn conflicts(&self, managed: &Managed, difference: &Difference) -> Vec<Conflict> {
        let changed = difference.modified.clone().union(&difference.added);
        let mut conflicts = Vec::new();
        for (manager, owned) in &managed.owners {
            if manager == self.manager {
                continue;
            }
            owned.set.intersection(&changed).each(&mut |path| {
                conflicts.push(Conflict {
                    manager: manager.clone(),
                    path: path.to_owned(),
                });
            });
        }
        conflicts
    }

    /// Removes the applier's fields that are no longer applied and have no other owner.
    fn prune(&self, merged: &Value, managed: &Managed, last: &Set) -> Value {
        // Three passes, as Go's `prune`, `addBackOwnedItems` and `addBackDanglingItems`. Go adds back what it has
        // removed by removing less from the merged object.
        let named = |set: &Set| set.with_named_fields(self.typed);
        let last = named(last);
        // Removes too much, since removing an item of a list or map removes all its fields. The result only shows which
        // fields are candidates: the steps below start from `merged` again, and keep fields of other owners or of none.
        let pruned = typed::remove(self.typed, merged, &last);
        let mut owned = Set::default();
        for owner in managed.owners.values() {
            owned = owned.union(&owner.set);
        }
        let all = named(&typed::fields(self.typed, merged));
        // Fields of other managers are kept, with the path to them.
        let left = named(&typed::fields(self.typed, &pruned));
        let unowned = all.clone().difference(&left.union(&named(&owned)));
        let pruned = typed::remove(self.typed, merged, &unowned);
        // Fields without an owner are kept too, unless they are below removed fields of the applier.
        let left = named(&typed::fields(self.typed, &pruned));
        let gone = all.difference(&left).intersection(&last);
        typed::remove(self.typed, merged, &gone)
    }
}

fn remove_changes(set: &mut Set, difference: &Difference) {
    // Path by path, not recursively: an owner of an item keeps its fields when another manager changes the item's
    // parent.
    *set = std::mem::take(set)
        .difference(&difference.modified)
        .difference(&difference.added)
        .difference(&difference.removed);
}
