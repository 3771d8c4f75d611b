//! Applies a set, or plans to.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use super::desired::Desired;
use super::error::{ApplyError, ObjectError, ObjectFailure};
use super::memory::ObjectId;
use super::plan::SetPlan;
use super::report::Applied;
use super::run::Run;
use super::set::Apply;

type Objects = BTreeSet<ObjectId>;

/// The objects of each set that one call of a reconciler applied, by name.
#[derive(Default)]
struct Pruned(Mutex<BTreeMap<String, Objects>>);

impl Apply {
    /// Applies the wanted objects of the set, and prunes the others.
    ///
    /// See [`Reconcile::apply`](crate::Reconcile::apply) for the requests and their order.
    ///
    /// # Errors
    ///
    /// Some objects could not be applied or deleted. All others were, except that nothing is deleted in a call in which
    /// an object could not be applied.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some objects may have been written; the next call writes the rest.
    pub async fn apply(&self, desired: Desired) -> Result<Applied, ApplyError> {
        Run::new(self).apply(desired).await
    }

    /// Returns what [`apply`](Self::apply) would do, by dry runs; nothing is written.
    ///
    /// The dry run of an object fails if something it needs does not exist yet, such as its namespace or CRD.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is written.
    pub async fn plan(&self, desired: Desired) -> SetPlan {
        Run::new(self).plan(desired).await
    }
}

impl Run<'_> {
    /// Applies the wanted objects, and prunes the others.
    async fn apply(&self, desired: Desired) -> Result<Applied, ApplyError> {
        let (stages, targets, mut failures) = self.resolve(desired).await;
        let mut applied = Applied::default();
        if failures
            .iter()
            .any(|each| matches!(each.error, ObjectError::Steps { .. }))
        {
            return Err(self.failed(failures, applied));
        }
        let wanted: Objects = targets.iter().map(|each| each.id()).collect();
        if self.is_another(&wanted) {
            failures.push(self.of_owner(ObjectError::AppliedTwice));
            return Err(self.failed(failures, applied));
        }
        match self.note_extent(&targets).await {
            Ok(known) => {
                self.apply_steps(&stages, &targets, &mut applied, &mut failures)
                    .await;
                if failures.is_empty() && !self.is_first(&wanted) {
                    failures.push(self.of_owner(ObjectError::AppliedTwice));
                }
                if failures.is_empty() {
                    self.set.remembered().keep(|id| wanted.contains(id));
                    if applied.waiting.is_empty() {
                        failures = self.prune(&known, &targets, &mut applied).await;
                    }
                }
                self.look_again(&applied);
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

    /// Returns whether this call of the reconciler has applied the same set with other objects before.
    fn is_another(&self, wanted: &Objects) -> bool {
        let pruned = self.set.call.feature::<Pruned>();
        let sets = pruned.0.lock();
        let before = sets.get(&self.set.marks.set);
        before.is_some_and(|before| before != wanted)
    }

    /// Records the objects of the set before it is pruned; returns whether it had no others in this call.
    fn is_first(&self, wanted: &Objects) -> bool {
        let pruned = self.set.call.feature::<Pruned>();
        let set = self.set.marks.set.clone();
        pruned.0.lock().entry(set).or_insert_with(|| wanted.clone()) == wanted
    }
}
