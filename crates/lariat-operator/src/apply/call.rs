//! A set is applied, or would be.

use std::collections::{BTreeMap, BTreeSet};

use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;

use super::desired::Desired;
use super::error::{ApplyError, ObjectError, ObjectFailure};
use super::plan::SetPlan;
use super::report::Applied;
use super::run::Run;
use super::set::Apply;

type Objects = BTreeSet<(Gvk, ObjectKey)>;

/// The sets that one call of a reconciler applied, by name, and which objects they had.
#[derive(Default)]
struct Pruned(Mutex<BTreeMap<String, Objects>>);

impl Apply {
    /// Brings the objects of the set to what is wanted, and deletes those that are not wanted any more.
    ///
    /// [`Reconcile::apply`](crate::Reconcile::apply) says what is sent, and in which order.
    ///
    /// # Errors
    ///
    /// Objects that could not be applied or deleted; all others were, except that nothing is deleted in a call in
    /// which something could not be applied.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some objects may have been written and others not; the next call does what is left.
    pub async fn apply(&self, desired: Desired) -> Result<Applied, ApplyError> {
        Run::new(self).apply(desired).await
    }

    /// Returns what [`apply`](Self::apply) would do, by a dry run on the API server. Nothing is written.
    ///
    /// What an object needs that does not exist yet, such as its namespace or its CRD, makes its dry run fail.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn plan(&self, desired: Desired) -> SetPlan {
        Run::new(self).plan(desired).await
    }
}

impl Run<'_> {
    /// Applies what is wanted, and prunes the rest.
    async fn apply(&self, desired: Desired) -> Result<Applied, ApplyError> {
        let (targets, mut failures) = self.resolve(desired).await;
        let mut applied = Applied::default();
        let wanted: Objects = targets.iter().map(|each| each.id()).collect();
        if self.is_another(&wanted) {
            failures.push(self.of_owner(ObjectError::AppliedTwice));
            return Err(self.failed(failures, applied));
        }
        match self.note_extent(&targets).await {
            Ok(known) => {
                self.apply_all(&targets, &mut applied, &mut failures).await;
                if failures.is_empty() && !self.is_first(&wanted) {
                    failures.push(self.of_owner(ObjectError::AppliedTwice));
                }
                if failures.is_empty() {
                    self.set.remembered().keep(|id| wanted.contains(id));
                    failures = self.prune(&known, &targets, &mut applied).await;
                }
            }
            Err(error) => failures.push(self.of_owner(error)),
        }
        if failures.is_empty() {
            Ok(applied)
        } else {
            Err(self.failed(failures, applied))
        }
    }

    fn failed(&self, failures: Vec<ObjectFailure>, applied: Applied) -> ApplyError {
        ApplyError::new(self.set.marks.set.clone(), failures, applied)
    }

    /// Returns whether this call of the reconciler has pruned all but other objects of the same set.
    fn is_another(&self, wanted: &Objects) -> bool {
        let pruned = self.set.call.feature::<Pruned>();
        let sets = pruned.0.lock();
        let before = sets.get(&self.set.marks.set);
        before.is_some_and(|before| before != wanted)
    }

    /// Notes which objects the set has before the others are pruned; returns whether it has no others in this call.
    fn is_first(&self, wanted: &Objects) -> bool {
        let pruned = self.set.call.feature::<Pruned>();
        let set = self.set.marks.set.clone();
        pruned.0.lock().entry(set).or_insert_with(|| wanted.clone()) == wanted
    }
}
