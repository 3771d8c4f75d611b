//! The two entry points of an applied set: [`Apply::apply`] writes it, [`Apply::plan`] runs it dry.
//!
//! Both check the objects first. `apply` then records the extent of the set, applies the steps in order, and prunes
//! what is no longer wanted.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use super::desired::Desired;
use super::error::{ApplyError, ObjectError, ObjectFailure};
use super::memory::ObjectId;
use super::plan::SetPlan;
use super::report::Applied;
use super::run::Run;
use super::set::Apply;

/// The ids of the objects of one set.
type Objects = BTreeSet<ObjectId>;

/// The objects that one call of a reconciler applied, by the name of the set.
///
/// Kept for the duration of the call, to find two applies of one set: each would prune the objects of the other.
#[derive(Default)]
struct Pruned(Mutex<BTreeMap<String, Objects>>);

impl Apply {
    /// Applies the wanted objects of the set, and prunes the others.
    ///
    /// See [`Reconcile::apply`](crate::Reconcile::apply) for the requests and their order.
    ///
    /// # Errors
    ///
    /// Some objects could not be applied or deleted; [`ApplyError`] names each of them. The other objects were applied.
    /// Nothing is pruned in a call in which an object could not be applied.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some objects may have been written; the next call writes the rest.
    pub async fn apply(&self, desired: Desired) -> Result<Applied, ApplyError> {
        Run::new(self).apply(desired).await
    }

    /// Returns what [`apply`](Self::apply) would do, by dry runs.
    ///
    /// Nothing is written. It is an apply whose writes are all dry runs, so it reads the same caches, makes the same
    /// checks and sends nothing for objects that are as wanted. It differs in two ways. It goes through steps whose
    /// predecessors are not ready, as there is nothing that could become ready; steps whose
    /// [precondition](crate::Step::only_when) does not hold wait. And it shows the deletion of an unwanted object that an
    /// apply would leave for its [next call](crate::Waiting::NextCall).
    ///
    /// The dry run of an object fails if something it needs does not exist yet, such as its namespace or CRD.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use lariat::{Desired, Reconcile};
    /// # async fn example(cx: Reconcile<ConfigMap>, desired: Desired) {
    /// let plan = cx.apply_set("main").plan(desired).await;
    /// println!("{plan}");
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is written.
    pub async fn plan(&self, desired: Desired) -> SetPlan {
        let planned = Run::dry(self).apply(desired).await;
        planned.map_or_else(SetPlan::from, SetPlan::from)
    }
}

impl Run<'_> {
    /// Applies the wanted objects, and prunes the others.
    async fn apply(&self, desired: Desired) -> Result<Applied, ApplyError> {
        let (stages, targets, mut failures) = self.resolve(desired).await;
        // An invalid object is a failure of its own, and the others are applied all the same. Steps without an order
        // stop everything, because it is unknown which objects may be applied before which.
        let mut applied = Applied::default();
        if failures
            .iter()
            .any(|each| matches!(each.error, ObjectError::Steps { .. }))
        {
            return Err(self.failed(failures, applied));
        }
        let wanted: Objects = targets.iter().map(|each| each.id()).collect();
        self.announce(&targets);
        // Checked before anything is written. The check after the steps repeats it, for two applies that run
        // concurrently in one call.
        if self.is_another(&wanted) {
            failures.push(self.of_owner(ObjectError::AppliedTwice));
            return Err(self.failed(failures, applied));
        }
        // The extent (the kinds and namespaces with objects of the set) is recorded on the owner before the first
        // write. If the process stops between the two, the next process knows where to look for objects to prune.
        match self.record_extent(&targets).await {
            Ok(known) => {
                self.apply_steps(&stages, &targets, &mut applied, &mut failures)
                    .await;
                if failures.is_empty() && !self.is_dry && !self.is_first(&wanted) {
                    failures.push(self.of_owner(ObjectError::AppliedTwice));
                }
                // An unwanted object may be in use until its successor exists. So pruning needs every object applied,
                // and every step begun.
                if failures.is_empty() {
                    // An object that is wanted again later may have been changed or recreated by then, so nothing of it
                    // is remembered.
                    if !self.is_dry {
                        self.set.memory().keep(|id| wanted.contains(id));
                    }
                    if applied.waiting.is_empty() {
                        failures = self.prune(&known, &targets, &mut applied).await;
                    }
                }
                // Also after failures of single objects: the others may become ready, and steps may continue.
                if !self.is_dry {
                    self.schedule_next_call(&applied);
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

    /// Returns whether this call has applied the same set with other objects before.
    fn is_another(&self, wanted: &Objects) -> bool {
        let pruned = self.set.call.feature::<Pruned>();
        let sets = pruned.0.lock();
        let before = sets.get(&self.set.marks.set);
        before.is_some_and(|before| before != wanted)
    }

    /// Records the objects of the set before pruning.
    ///
    /// Returns `false` if this call has recorded other objects for the set before.
    fn is_first(&self, wanted: &Objects) -> bool {
        let pruned = self.set.call.feature::<Pruned>();
        let set = self.set.marks.set.clone();
        pruned.0.lock().entry(set).or_insert_with(|| wanted.clone()) == wanted
    }
}
