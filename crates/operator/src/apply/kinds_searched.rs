//! Chooses the kinds that are searched for objects to prune.
//!
//! These are the kinds of the wanted objects, those that the program declares or has applied, and a few of those that
//! only the record on the owner names. Whoever may write the owner may write its record.

use std::collections::{BTreeMap, BTreeSet};

use lariat_core::{Gvk, ResourceKind};

use super::error::ObjectError;
use super::order::rank;
use super::resolve::Target;
use super::run::Run;
use super::set::Apply;

/// The number of kinds that one call searches although only the record names them.
///
/// The others are searched by later calls, because kinds without objects are removed from the record.
const MOST_UNDECLARED: usize = 8;

/// The kinds to search.
#[derive(Default)]
pub(super) struct Kinds {
    /// The kinds to search, in reverse order of applying.
    pub(super) searched: Vec<Gvk>,
    /// Those that the record alone names.
    pub(super) undeclared: BTreeSet<Gvk>,
    pub(super) unsearched: BTreeSet<Gvk>,
}

impl Run<'_> {
    /// Returns the kinds to search.
    ///
    /// All versions of a kind have the same objects, so one version is enough. Whoever may write the owner may write its
    /// record, so a few kinds only are searched for no other reason than the record.
    pub(super) async fn kinds_to_prune(&self, known: &BTreeSet<Gvk>, targets: &[Target]) -> Kinds {
        let wanted = targets.iter().map(Target::gvk);
        // The first version of a kind is searched: a wanted one is certainly served, a recorded one perhaps no longer.
        let all = wanted.chain(&self.set.options.prunes).chain(known);
        let mut kinds: BTreeMap<(&str, &str), &Gvk> = BTreeMap::new();
        for gvk in all {
            kinds.entry((gvk.group(), gvk.kind())).or_insert(gvk);
        }
        let (mut searched, mut recorded): (Vec<Gvk>, Vec<Gvk>) = kinds
            .into_values()
            .cloned()
            .partition(|gvk| self.is_dealt_with(gvk, targets));
        if recorded.len() > MOST_UNDECLARED {
            self.put_served_first(&mut recorded).await;
        }
        let (undeclared, unsearched) = recorded.split_at(recorded.len().min(MOST_UNDECLARED));
        searched.extend(undeclared.iter().cloned());
        searched.sort_by_key(|gvk| std::cmp::Reverse(rank(gvk)));
        if let Some(first) = unsearched.first() {
            self.warn_of_unsearched(first, unsearched.len());
        }
        Kinds {
            searched,
            undeclared: undeclared.iter().cloned().collect(),
            unsearched: unsearched.iter().cloned().collect(),
        }
    }

    /// Sorts kinds that are served before those that are not, which have no objects that could be deleted.
    async fn put_served_first(&self, kinds: &mut [Gvk]) {
        let mapper = self.set.operator.caches.clients().mapper();
        // Without discovery the search fails too, and says why.
        let Ok(served) = self.set.memory.served_kinds(mapper).await else {
            return;
        };
        let served = served.kinds.iter().map(ResourceKind::gvk);
        let served: BTreeSet<(&str, &str)> = served.map(|gvk| (gvk.group(), gvk.kind())).collect();
        kinds.sort_by_key(|gvk| !served.contains(&(gvk.group(), gvk.kind())));
    }

    fn warn_of_unsearched(&self, first: &Gvk, count: usize) {
        let owner = &self.set.owner;
        if self.set.memory.is_first_unreadable(first, owner.uid()) {
            tracing::warn!(
                set = &self.set.marks.set, owner = %owner.key(), kind = %first, count,
                "the record of the set on its owner names many kinds that nothing in the program applies: somebody else \
                 may have written it; a few of them are searched in each call; declare kinds with `Reconciler::prunes`"
            );
        }
    }

    /// Returns whether anything in the program deals with a kind.
    fn is_dealt_with(&self, gvk: &Gvk, targets: &[Target]) -> bool {
        let Apply { operator, call, .. } = self.set;
        self.is_declared(gvk, targets) || call.owns(gvk) || operator.caches.existing(gvk).is_some()
    }

    /// Returns whether the program says that it applies or prunes a kind.
    fn is_declared(&self, gvk: &Gvk, targets: &[Target]) -> bool {
        let Apply {
            operator,
            memory,
            options,
            ..
        } = self.set;
        is_wanted(gvk, targets)
            || options.prunes.contains(gvk)
            || memory.has_applied(gvk)
            || operator.needs.has_deletions_of(gvk)
    }

    /// Returns whether an error concerns a kind that the program has dropped.
    ///
    /// A release that no longer applies a kind often no longer has the permission to read it either. If the set does
    /// not want the kind and nothing in the program declares it, a forbidden read is logged as a warning, and the apply
    /// does not fail: it would fail forever. A kind that the program applies for other owners is different, and a
    /// forbidden read of it is a failure.
    pub(super) fn is_dropped_kind(
        &self,
        gvk: &Gvk,
        error: &ObjectError,
        targets: &[Target],
    ) -> bool {
        let Apply { memory, owner, .. } = self.set;
        // Any sign that the program still deals with the kind makes a missing permission an error of the installation.
        let is_dropped_kind = !self.is_declared(gvk, targets) && error.is_reading_forbidden();
        if is_dropped_kind && memory.is_first_unreadable(gvk, owner.uid()) {
            let (set, error) = (&self.set.marks.set, lariat_core::describe(error));
            tracing::warn!(
                kind = %gvk, set, error,
                "objects that the set once had are not pruned: an RBAC rule for `delete`, `get` and `list` is missing; \
                 declare the kind with `Reconciler::prunes`"
            );
        }
        is_dropped_kind
    }
}

/// Returns whether the set wants objects of a kind.
pub(super) fn is_wanted(gvk: &Gvk, targets: &[Target]) -> bool {
    targets.iter().any(|each| *each.gvk() == *gvk)
}
