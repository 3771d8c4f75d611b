//! The settings of a reconciler, besides its function.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{CachedObject, Change, View};
use lariat_controller::Predicate;
use lariat_core::Gvk;

use super::gate::Guards;
use super::policy::ErrorPolicy;
use crate::finalizer::Held;
use crate::needs::Rule;
use crate::reconcile::{Callback, Claim, OfReconciler, OperatorState};
use crate::status::Report;

/// The delay of a cleanup after a final failure, if the reconciler has no period.
const CLEANUP_PERIOD: Duration = Duration::from_secs(600);

/// The settings of a reconciler, besides its function.
pub(super) struct Setup<K> {
    pub(super) operator: Arc<OperatorState>,
    pub(super) requeue_after: Option<Duration>,
    pub(super) on_error: Option<Box<ErrorPolicy<K>>>,
    pub(super) on_deleted: Option<Callback<K>>,
    pub(super) guards: Guards,
    /// The declared permissions.
    pub(super) needs: Vec<Rule>,
    pub(super) finalizer: Option<Held<K>>,
    pub(super) report: Option<Report>,
    /// The kinds that the reconciled objects own.
    pub(super) owned: Vec<Gvk>,
}

impl<K: View> Setup<K> {
    /// Creates the settings, with the permissions every reconciler of the kind needs.
    pub(super) fn new(operator: &Arc<OperatorState>, reads: Rule) -> Self {
        Self {
            operator: Arc::clone(operator),
            requeue_after: None,
            on_error: None,
            on_deleted: None,
            guards: Guards::default(),
            needs: vec![reads],
            finalizer: None,
            report: None,
            owned: Vec::new(),
        }
    }

    /// Returns what calls know of the reconciler.
    pub(super) fn of_reconciler(&self) -> OfReconciler {
        OfReconciler {
            reported: self.report.as_ref().map(Report::kind),
            owned: self.owned.clone().into(),
        }
    }

    /// Returns what no other reconciler of the kind may have.
    pub(super) fn claims(&self) -> Vec<Claim> {
        let condition = self.report.as_ref().map(Report::kind);
        let finalizer = self.finalizer.as_ref().map(Held::name);
        let conditions = condition.map(Claim::Condition).into_iter();
        conditions.chain(finalizer.map(Claim::Finalizer)).collect()
    }

    /// Returns the function for the delay after a final failure.
    ///
    /// There may be no watch for what the reconciler depends on, and nothing else happens to an object that waits for
    /// its cleanup.
    pub(super) fn after_final_failure(
        &self,
    ) -> Option<impl Fn(Option<&CachedObject>) -> Option<Duration> + Send + Sync + use<K>> {
        let period = self.requeue_after;
        let finalizer = self.finalizer.as_ref().map(Held::name);
        let after = move |object: Option<&CachedObject>| {
            let object = object?;
            let finalizer = finalizer.as_deref().filter(|_| object.is_deleting());
            let waits =
                finalizer.is_some_and(|name| object.finalizers().any(|each| *each == *name));
            period.or(waits.then_some(CLEANUP_PERIOD))
        };
        (period.is_some() || self.finalizer.is_some()).then_some(after)
    }

    /// Returns the predicate of changes that call the reconciler whatever its options are.
    pub(super) fn needed(&self) -> Predicate {
        // Without a function for deletions too: applied sets are forgotten then.
        let gone = Predicate::new(|change| matches!(change, Change::Deleted { .. }));
        match &self.finalizer {
            Some(finalizer) => gone.or(finalizer.needed()),
            None => gone,
        }
    }
}
